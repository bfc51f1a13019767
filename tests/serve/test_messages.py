"""A name that stands twice in what clients send: refused with its place at every door, and nothing starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from luthier.serve.messages import Messages
from tests.serve.house import ENSEMBLES, greeter
from tests.serve.test_bad_requests import META, MODERN
from tests.serve.test_direct import ACCEPT, TOOLS, opened, posted
from tests.serve.test_hooks import echo
from tests.serve.test_http import asked, served
from tests.serve.test_pipes import hosted, ping

if TYPE_CHECKING:
    from pathlib import Path

JSON = {"Content-Type": "application/json"}
SAID = "the key `name` stands a second time in line 1, column "


def twice(body: Any) -> bytes:
    """The body, with the name Ada given beside the name Bo."""
    return json.dumps(body).replace('"name": "Ada"', '"name": "Bo", "name": "Ada"').encode()


@pytest.mark.parametrize(
    ("path", "body", "column"),
    [
        ("/mcp/tools/greeting", {"arguments": {"name": "Ada"}}, 30),
        ("/mcp/tools/greeting", {"surplus": {"name": "Ada"}}, 28),
        ("/api/v1/ensembles/greeting/run", {"inputs": {"name": "Ada"}}, 27),
        ("/api/v1/ensembles/greeting/run/async", {"inputs": {"name": "Ada"}}, 27),
        ("/echo", {"name": "Ada"}, 16),
        ("/echo", {"inner": [{"name": "Ada"}]}, 27),
    ],
)
async def test_a_body_with_a_name_twice_is_refused_as_broken_json_is(
    tmp_path: Path, path: str, body: Any, column: int
) -> None:
    server, hook = greeter(), echo(methods=["POST"])
    async with served(tmp_path, server=server, ensembles=[*ENSEMBLES, hook]) as url:
        status, found, _ = await asked(url + path, "POST", data=twice(body), headers=JSON)
        broken, _, _ = await asked(url + path, "POST", data=b"{", headers=JSON)
        _, runs, _ = await asked(f"{url}/api/v1/runs")
    assert (status, found["error"], broken) == (400, "Invalid body", 400)
    assert found["message"] == f"{SAID}{column}"
    assert (server.connections, runs["runs"]) == (0, [])


async def test_a_parameter_that_is_json_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=[*ENSEMBLES, echo()]) as url:
        status, found, _ = await asked(f"{url}/echo", params={"who": '{"name": 1, "name": 2}'})
    assert status == 400
    assert f"the input `who` is JSON, and {SAID}13" in str(found)


@pytest.mark.parametrize("name", ["greeting", "greet"])
@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_message_with_a_name_twice_is_refused_in_either_era(
    tmp_path: Path, era: str, name: str
) -> None:
    server = greeter()
    call: dict[str, Any] = {"arguments": {"name": "Ada"}}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": "a1", "method": "tools/call", "params": call}
    async with served(tmp_path, server=server, serve={"tools": TOOLS}) as url:
        if era == "2025":
            headers, call["name"] = await opened(url), name
        else:
            headers = {**ACCEPT, **MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
            call |= {"name": name, "_meta": META}
        status, kind, found = await posted(url, twice(body), headers)
        assert server.connections == 0
        assert (await posted(url, body, headers))[2]["result"]["isError"] is False
    assert (status, kind, found["id"], found["error"]["code"]) == (400, "application/json", "a1", -32700)
    assert SAID in found["error"]["message"]


async def test_over_pipes_it_is_answered_by_its_id_and_the_next_message_is_read(tmp_path: Path) -> None:
    call = {"name": "greeting", "arguments": {"name": "Ada"}}
    async with hosted(tmp_path) as host:
        await host.say(twice({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call}), ping(6))
        found = {one["id"]: one for one in (await host.hear(), await host.hear())}
    assert found[5]["error"]["code"] == -32700
    assert SAID in found[5]["error"]["message"]
    assert found[6]["result"] == {}


async def test_a_message_in_pieces_is_handed_on_whole_and_one_that_breaks_off_is_not() -> None:
    heard: list[Any] = []

    async def app(_: Any, receive: Any, __: Any) -> None:
        heard.append(await receive())
        heard.append(await receive())

    async def sent(_: Any) -> None:
        raise AssertionError

    def receiving(*messages: dict[str, Any]) -> Any:
        left = list(messages)

        async def receive() -> dict[str, Any]:
            return left.pop(0)

        return receive

    scope = {"type": "http", "method": "POST", "path": "/mcp"}
    gone = {"type": "http.disconnect"}
    half = {"type": "http.request", "body": b'{"a"', "more_body": True}
    await Messages(app, "/mcp")(scope, receiving(half, {"type": "http.request", "body": b": 1}"}, gone), sent)
    assert heard == [{"type": "http.request", "body": b'{"a": 1}', "more_body": False}, gone]
    await Messages(app, "/mcp")(scope, receiving(half, gone), sent)
    assert len(heard) == 2
