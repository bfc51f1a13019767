"""Bad input through every door: the command line, the HTTP API, triggers, REST, the protocol say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from luthier.cli.app import app
from tests.serve.house import greeter
from tests.serve.test_http import CI, asked, connected, served

if TYPE_CHECKING:
    from pathlib import Path

STRICT: dict[str, Any] = {
    "ensemble": "strict",
    "inputs": {
        "name": {"type": "string", "required": True, "description": "Whom to greet."},
        "count": {"type": "integer", "default": 1},
        "tone": {"enum": ["kind", "dry"]},
        "tags": {"type": "array"},
        "more": {"type": "object"},
        "loud": "boolean",
        "half": {"type": "number", "default": "${input.count / 2}"},
    },
    "trigger": [{"type": "mcp"}, {"type": "http", "path": "/strict", "methods": ["POST"]}],
    "agents": [
        {
            "name": "greet",
            "operation": "tools",
            "config": {"mcp": "greeter", "tool": "greet"},
            "input": {"name": "${input.name}"},
        }
    ],
}
BAD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "null where something is required": {"name": None},
    "a number in place of text": {"name": 5},
    "text in place of a number": {"name": "a", "count": "five"},
    "half in place of a whole": {"name": "a", "count": 1.5},
    "true in place of a number": {"name": "a", "count": True},
    "a word that is none of those": {"name": "a", "tone": "rude"},
    "text in place of a list": {"name": "a", "tags": "x"},
    "a list in place of a mapping": {"name": "a", "more": [1]},
    "a number in place of true": {"name": "a", "loud": 1},
    "a name that is nearly right": {"nmae": "a"},
    "a default that cannot be made": {"name": "a", "count": "x"},
    "all at once": {"count": "x", "tone": 5, "tags": {}, "more": "y", "loud": "no"},
}


@pytest.fixture
def faults(tmp_path: Path, kind: str) -> list[str]:
    """What the command line says of these inputs."""
    (tmp_path / "ensembles").mkdir()
    with (tmp_path / "ensembles" / "strict.yaml").open("w") as out:
        YAML(typ="safe", pure=True).dump(STRICT, out)
    (tmp_path / "luthier.yaml").write_text("mcpServers: {greeter: {command: python, args: [none.py]}}\n")
    file = tmp_path / "inputs.json"
    file.write_bytes(msgspec.json.encode(BAD[kind]))
    words = ["--project", str(tmp_path / "luthier.yaml"), "run", "strict", "--inputs", str(file), "--json"]
    done = CliRunner().invoke(app, words, prog_name="luthier")
    assert done.exit_code == 2, done.output
    return [fault["message"] for fault in msgspec.json.decode(done.stdout)["error"]["faults"]]


@pytest.mark.parametrize("kind", BAD)
async def test_every_door_says_the_same_and_starts_nothing(
    tmp_path: Path, kind: str, faults: list[str]
) -> None:
    inputs, server = BAD[kind], greeter()
    assert faults
    async with served(tmp_path, server=server, ensembles=[STRICT]) as url:
        api = await asked(f"{url}/api/v1/ensembles/strict/run", "POST", json={"inputs": inputs})
        later = await asked(f"{url}/api/v1/ensembles/strict/run/async", "POST", json={"inputs": inputs})
        hook = await asked(f"{url}/strict", "POST", json=inputs)
        rest = await asked(f"{url}/mcp/tools/strict", "POST", json={"arguments": inputs})
        async with connected(url, CI, "auto") as peer:
            called = await peer.call_tool("strict", inputs)
        _, runs, _ = await asked(f"{url}/api/v1/runs")
    for status, body, _ in (api, later, hook):
        assert (status, [fault["message"] for fault in body["faults"]]) == (400, faults)
    assert (rest[0], called.is_error) == (400, True)
    told = called.content[0].text  # type: ignore[union-attr]
    assert rest[1]["content"] == [{"type": "text", "text": told}]
    assert [line.partition(" (")[0] for line in told.split("\n")] == [
        one.partition(" (")[0] for one in faults
    ]
    assert (server.connections, runs["runs"]) == (0, [])


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b" " * 5000, "application/json", 413),
    ],
)
@pytest.mark.parametrize(
    "path", ["/mcp", "/mcp/tools/greeting", "/api/v1/ensembles/greeting/run", "/callback/hitl_x"]
)
async def test_a_body_that_cannot_be_read_is_refused_at_every_door(
    tmp_path: Path, path: str, body: bytes, kind: str, status: int
) -> None:
    server = greeter()
    most = 4096 if status == 413 else 10**6
    headers = {"Content-Type": kind, "Accept": "application/json, text/event-stream"}
    async with served(tmp_path, server=server, serve={"max_body_bytes": most}) as url:
        found, _, _ = await asked(url + path, "POST", data=body, headers=headers)
    assert (found, server.connections) == (status, 0)


async def test_what_is_refused_is_in_the_log_without_what_was_brought(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as url:
        await asked(f"{url}/api/v1/runs", token="wrong-wrong-wrong")
        await asked(f"{url}/api/v1/runs", headers={"Host": "evil.example.com"})
        await asked(f"{url}/api/v1/runs/x/record")
    assert "refused a request with 401: a token of nobody" in caplog.text
    assert "refused a request with 403: Host ['evil.example.com']" in caplog.text
    assert "refused record: client ci lacks the role admin" in caplog.text
    assert "wrong-wrong-wrong" not in caplog.text
