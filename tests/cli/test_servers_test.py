"""`luthier servers test`: what stands behind the entries, and what is wrong with what does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from typer.testing import Result

from tests.connect.sandbox.cell import needs_sandbox

if TYPE_CHECKING:
    from pathlib import Path

Cli = Callable[..., Result]

BROKEN = """
  gone: {command: python, args: [gone.py], required: true}
  secret: {url: "https://mcp.example.com/", auth: {type: bearer, token: "${LUTHIER_TEST_UNSET}"}}
  resting: {command: python, args: [gone.py], disabled: true}
"""


def with_broken_servers(project: Path) -> None:
    file = project / "luthier.yaml"
    file.write_text(file.read_text().replace("mcpServers:\n", f"mcpServers:{BROKEN}", 1))


def test_servers_that_work_are_told_with_what_they_speak_and_offer(cli: Cli, project: Path) -> None:
    done = cli("servers", "test")
    assert done.exit_code == 0, done.stderr
    id, said, transport, protocol, tools, seconds = done.stdout.strip().split("\t")
    assert (id, said, transport) == ("greeter", "ok", "stdio")
    assert protocol.startswith("20")
    assert int(tools) >= 1
    assert seconds.endswith(" s")


def test_a_server_that_does_not_work_is_told_with_what_to_do_and_fails_the_command(
    cli: Cli, project: Path
) -> None:
    with_broken_servers(project)
    done = cli("servers", "test")
    assert done.exit_code == 1
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [
        ["gone", "failed (spawn)"],
        ["secret", "failed (connect)"],
        ["greeter", "ok"],
    ]
    assert "the script 'gone.py' is not there" in done.stderr
    assert "luthier servers show gone" in done.stderr
    assert "LUTHIER_TEST_UNSET is not set" in done.stderr


def test_one_server_can_be_tested_alone_even_if_it_is_disabled(cli: Cli, project: Path) -> None:
    with_broken_servers(project)
    assert cli("servers", "test", "greeter").exit_code == 0
    done = cli("servers", "test", "resting")
    assert done.exit_code == 1
    assert done.stdout.startswith("resting\tfailed")


def test_a_server_that_waits_for_approval_is_named_and_not_started(cli: Cli, project: Path) -> None:
    file = project / "luthier.yaml"
    canary = "import pathlib; pathlib.Path('started').touch()\n"
    (project / "canary.py").write_text(canary)
    entry = "  late: {command: python, args: [canary.py], approved: false, required: true}\n"
    file.write_text(file.read_text().replace("mcpServers:\n", f"mcpServers:\n{entry}", 1))
    for words in (("servers", "test"), ("servers", "test", "late")):
        done = cli(*words)
        assert done.exit_code == 1
        assert done.stdout.startswith("late\twaits for approval")
        assert "luthier servers approve late" in done.stderr
    assert cli("servers", "list").stdout.splitlines()[0].endswith("waits for approval")
    shown = cli("servers", "show", "late").stdout
    assert "approved   false" in shown
    assert "late (waits for approval)\n  runs     python canary.py\n" in shown
    assert '"runs": "python canary.py"' in cli("servers", "show", "late", "--json").stdout
    assert "mcp://late" not in cli("tools", "list").stdout
    done = cli("call", "mcp://late/x")
    assert done.exit_code == 3
    assert "luthier servers approve late" in done.stderr
    assert not (project / "started").exists()


def test_as_json_it_is_one_document(cli: Cli, project: Path) -> None:
    with_broken_servers(project)
    done = cli("servers", "test", "--json")
    assert done.exit_code == 1
    gone, secret, greeter = json.loads(done.stdout)["servers"]
    assert (gone["ok"], gone["error"]["kind"], gone["error"]["phase"]) == (False, "connect", "spawn")
    assert secret["error"]["message"].endswith("the environment variable LUTHIER_TEST_UNSET is not set.")
    assert (greeter["ok"], "error" in greeter) == (True, False)
    assert greeter["tools"]


def test_a_server_that_is_not_there_is_a_fault_of_usage(cli: Cli, project: Path) -> None:
    done = cli("servers", "test", "greter")
    assert done.exit_code == 2
    assert "Did you mean greeter?" in done.stderr


def test_a_status_of_http_is_told(cli: Cli, folder: Path) -> None:
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Closed(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_error(503)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Closed) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/mcp"
            (folder / "luthier.yaml").write_text(f"mcpServers: {{far: {{url: '{url}'}}}}\n")
            done = cli("servers", "test")
        finally:
            server.shutdown()
            thread.join(10)
    assert done.exit_code == 1
    assert "HTTP 503" in done.stdout


@needs_sandbox
def test_a_server_in_a_sandbox_is_told_with_what_it_is_kept_to(cli: Cli, project: Path) -> None:
    (project / "data").mkdir()
    (project / "link").symlink_to("data")
    box = "sandbox: {mode: required, network: none, read: [link], memory_mb: 300, max_processes: 40}"
    file = project / "luthier.yaml"
    file.write_text(file.read_text().replace("    command: python\n", f"    command: python\n    {box}\n", 1))
    done = cli("servers", "test")
    assert done.exit_code == 0, done.output
    assert "greeter: sandbox: no network, 300 MB, 40 processes\n" in done.stdout
    assert f"greeter: read {project / 'link'} (it is {(project / 'data').resolve()})\n" in done.stdout
    told = json.loads(cli("servers", "test", "--json").stdout)
    assert told["servers"][0]["isolation"][0].startswith("sandbox: no network")


@needs_sandbox
def test_a_server_that_misses_something_in_its_sandbox_is_told_why(cli: Cli, project: Path) -> None:
    (project / "beside.py").write_text("")
    (project / "lonely.py").write_text("import beside\n")
    file = project / "luthier.yaml"
    entry = "  lonely: {command: python, args: [lonely.py], sandbox: required, max_retries: 0}\n"
    file.write_text(file.read_text().replace("mcpServers:\n", f"mcpServers:\n{entry}", 1))
    done = cli("servers", "test", "lonely")
    assert done.exit_code == 1
    assert "No module named 'beside'" in done.stderr
    assert "It runs in a sandbox and sees only" in done.stderr
