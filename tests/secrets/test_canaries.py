"""Secrets of every kind, drills in which everything goes wrong, and a search of all that was written.

Servers repeat what they were sent, beside words that are no secret: those must be found in a sink, or the
search of it proves nothing.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import subprocess
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import keyring
import pytest

from luthier import Runtime
from luthier.errors import LuthierError
from luthier.secrets import Secret, Vault, find_keys
from luthier.serve import Listening, Service
from luthier.spec import load_project
from luthier.store import Database, SqlState
from luthier.wire.auth import FileTokens
from luthier.wire.auth.tokens import Grant, Registration, Tokens
from tests.faults.http.certificates import Authority
from tests.secrets.sweep import CONTROL, Sweep, canaries, encodings
from tests.secrets.test_keyring import Ring
from tests.wire.http.support import Answering, Asked, Site, answer, error, modern, on_call, text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from luthier.events import Event

PROJECT = """
environment: development
env_file: .env
audit: {record: [arguments, results], key: "${env.AUDIT_KEY}"}
mcpServers:
  far:
    url: SITE
    max_retries: 0
    secret: "SIGNATURE"
    auth: {type: bearer, token: "LITERAL_TOKEN"}
    tool_timeout_ms: 300
    headers:
      X-Env: "${env.CANARY}"
      X-Env-File: "key ${CANARY_OF_FILE}"
      X-Vault: "${secret:git}"
      X-Client: "${env.CLIENT}"
  ringing: {url: SITE, max_retries: 0, headers: {X-Api-Key: "${keyring:git/me}"}}
  near:
    command: python
    args: [near.py]
    max_retries: 0
    env: {API_KEY: "${file:token}", OTHER_TOKEN: "LITERAL_ENV"}
    inherit_env: [INHERITED_TOKEN]
  other: {command: python, args: [other.py, --token, "ARGUMENT"], max_retries: 0}
  proxied:
    url: "http://127.0.0.1:9/?api_key=PARAMETER"
    proxy: "http://me:PROXY@127.0.0.1:9"
    max_retries: 0
  tls: {url: "TLS", max_retries: 0, headers: {X-Api-Key: "${env.CANARY}"}}
  down: {url: "http://127.0.0.1:9/", max_retries: 0, headers: {X-Api-Key: "${secret:git}"}}
  unset: {url: SITE, headers: {X-Api-Key: "${secret:nothing}"}}
serve:
  clients: {ci: {tokens: "${env.SERVE_TOKEN}", roles: [admin]}}
  tools: [mcp://far/echo, mcp://near/x]
"""

ENSEMBLE = """
name: drill
agents:
  - {name: told, operation: tools, config: {mcp: far, tool: echo}, inputs: {do: result}}
  - {name: failed, operation: tools, config: {mcp: far, tool: echo}, inputs: {do: "500"}}
  - {name: seen, operation: transform, config: {value: "${failed.error}"}}
"""

FAILING = """
name: failing
description: CONTROL
trigger: {type: api}
agents:
  - {name: failed, operation: tools, config: {mcp: far, tool: echo}, inputs: {do: "500"}}
"""

# What a client asks of the service: whatever fails, and whatever there is to see of it.
ASKED: tuple[tuple[str, str, Any], ...] = (
    *(
        ("GET", path, None)
        for path in ("/health", "/openapi.json", "/mcp/tools", "/api/v1/ensembles", "/none")
    ),
    *(
        ("POST", "/mcp/tools/far__echo", {"arguments": {"do": do}})
        for do in ("401", "500", "fault", "garbage", "hang")
    ),
    ("POST", "/mcp/tools/near__x", {}),
    ("POST", "/api/v1/ensembles/failing/run", {"inputs": {}}),
    ("POST", "/api/v1/ensembles/failing/run", {"odd": 1}),
    ("GET", "/api/v1/runs", None),
    ("GET", "/api/v1/runs/RUN", None),
    ("GET", "/api/v1/runs/RUN/events", None),
    ("GET", "/api/v1/approvals", None),
)

NEAR = """
import os, sys
for name, value in os.environ.items():
    print(name, "=", value, value.encode().hex(), file=sys.stderr)
print("CONTROL", file=sys.stderr, flush=True)
sys.exit(3)
"""

OTHER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "other", "version": "1"}},
        "tools/list": {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(dict(os.environ)) + "CONTROL"}]},
    }.get(request["method"])
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    reply |= {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps(reply), flush=True)
"""


async def _echo(asked: Asked, out: Answering) -> None:
    """Whatever it was sent, in several spellings, in all the ways in which a call can end."""
    sent = "\n".join(
        f"{name}: {value} {base64.b64encode(f'x{value}'.encode()).decode()} {value.encode().hex()}"
        for name, value in asked.headers.items()
    )
    said = f"{CONTROL} {sent}"
    match str(asked.json["params"]["arguments"].get("do")):
        case "hang":
            await out.gone()
        case "401" | "500" as status:
            out.give(
                int(status), said.encode(), kind="text/plain", www_authenticate=f'Bearer realm="{CONTROL}"'
            )
        case "fault":
            out.give(200, error(asked.json["id"], -32000, said, {"sent": sent}))
        case "garbage":
            out.give(200, said.encode())
        case _:
            out.give(200, answer(asked.json["id"], text(said)))


class Drill:
    """A project with secrets of every kind, and the sweep of all that its use writes."""

    def __init__(self, root: Path, site: Site, tls: Site) -> None:
        self.root, self.sweep, self.known = root, Sweep(), canaries()
        self.homes = [root / name for name in ("luthier.yaml", ".env", "token")]
        key = base64.b64encode(self.known["vault key"].ljust(32)[:32].encode()).decode()
        self.known["vault key"] = key
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "CANARY": self.known["env"],
            "CLIENT": self.known["client secret"],
            "INHERITED_TOKEN": self.known["inherited"],
            "AUDIT_KEY": self.known["audit key"],
            "SERVE_TOKEN": self.known["client token"],
            "LUTHIER_SECRET_KEY": key,
        }
        written = PROJECT.replace("SITE", site.url).replace("TLS", tls.url)
        for word, kind in (
            ("SIGNATURE", "signature"),
            ("LITERAL_TOKEN", "literal token"),
            ("LITERAL_ENV", "literal env"),
            ("ARGUMENT", "argument"),
            ("PARAMETER", "parameter"),
            ("PROXY", "proxy"),
        ):
            secret = self.known[kind]
            in_a_url = kind in ("parameter", "proxy")
            written = written.replace(word, quote(secret, safe="") if in_a_url else secret)
        for name, content in {
            "luthier.yaml": written,
            ".env": f"CANARY_OF_FILE={self.known['env file']}\n",
            "token": f"{self.known['file']}\n",
            "near.py": NEAR.replace("CONTROL", CONTROL),
            "other.py": OTHER.replace("CONTROL", CONTROL),
            "ensembles/drill.yaml": ENSEMBLE,
            "ensembles/failing.yaml": FAILING.replace("CONTROL", CONTROL),
        }.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(content)
        (root / "token").chmod(0o600)
        self.database = Database("sqlite:///.luthier/luthier.db", root)
        self.state = SqlState(self.database)
        self.vault = Vault(self.state, lambda id: find_keys(self.environ, id, project=root))
        self.vault.set("git", Secret(self.known["vault"]))

    def notify(self, event: Event) -> None:
        self.sweep.take("events", repr(event))

    async def through(self, way: str, work: Awaitable[Any]) -> None:
        """Do something that fails, and take all that its error says and holds."""
        try:
            async with asyncio.timeout(20):
                await work
        except LuthierError as caught:
            said = "".join(traceback.format_exception(caught))
            self.sweep.take(
                "errors", way, str(caught), repr(caught), vars(caught), caught.facts(), caught.hint
            )
            self.sweep.take("tracebacks", said)

    async def in_python(self) -> None:
        """Everything that goes wrong, through the face for Python."""

        def broken(secret: str) -> str:
            """Fails with a secret in its hands."""
            raise ValueError(f"{CONTROL} cannot use {secret}")

        rt = Runtime.open(
            load_project(self.root / "luthier.yaml"),
            environ=self.environ, state=self.state, observers=[self], tools=[broken],
        )  # fmt: skip
        headers = {"X-Caller-Token": self.known["call header"]}
        try:
            for do in ("result", "401", "500", "fault", "garbage", "hang"):
                call = rt.call("mcp://far/echo", do=do, call_headers=headers)
                await self.through(do, call)
            await self.through("keyring", rt.call("mcp://ringing/echo", do="500"))
            await self.through("keyring", rt.call("mcp://ringing/echo", do="result"))
            for server in ("near", "tls", "down", "unset", "proxied"):
                await self.through(server, rt.connect(server))
                self.sweep.take("reports", repr(report := await rt.test_server(server)), report.to_json())
            told = await rt.call("mcp://other/env")
            self.sweep.take("environment of another server", told.content)
            await self.through("locals", rt.call("custom://broken", secret=self.known["env"]))
            run = await rt.run("drill")
            self.sweep.take("failures of runs", run.steps["failed"], run.to_json()["error"])
            things = (rt, rt.project, rt.tools, rt.state, rt.approvals, self.vault, run)
            self.sweep.take("repr", CONTROL, *map(repr, things))
        finally:
            await rt.close()

    async def in_service(self) -> None:
        """The same through the service, as a client by HTTP meets it, and as one without its token."""
        project = load_project(self.root / "luthier.yaml")
        async with Runtime.open(project, environ=self.environ, state=self.state, observers=[self]) as rt:
            listening = Listening.on("127.0.0.1:0", Service(rt), project, rt.environ)
            serving = asyncio.create_task(listening.serve())
            async with aiohttp.ClientSession(f"http://{listening.address}") as session:
                for token in (self.known["client token"], self.known["client token"][:-1]):
                    for method, path, body in ASKED:
                        run = next((row.id for row in rt.runs.list(ensemble="failing")), "")
                        headers = {"Authorization": f"Bearer {token}"}
                        way = path.replace("RUN", run)
                        async with session.request(method, way, json=body, headers=headers) as reply:
                            said = await reply.text()
                            self.sweep.take("served", way, reply.status, dict(reply.headers), said)
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    async def tokens(self) -> None:
        """A login, as it is kept."""
        store = FileTokens(
            self.root / ".luthier" / "tokens.json", keys=find_keys(self.environ, "tokens", project=self.root)
        )
        grant = Grant(
            issuer=f"https://{CONTROL}.example",
            token_endpoint="https://auth.example/token",
            registration=Registration(client_id="me", client_secret=Secret(self.known["client secret"])),
            tokens=Tokens(
                access=Secret(self.known["access token"]), refresh=Secret(self.known["refresh token"])
            ),
        )
        await store.save("k", grant)
        self.sweep.take("repr", repr(grant))
        assert await store.load("k") == grant

    def by_command(self, *words: str) -> None:
        """A command as a process of its own; what it prints, but results of tools on stdout."""
        done = subprocess.run(
            [sys.executable, "-m", "luthier", *words],
            cwd=self.root, env=self.environ, capture_output=True, timeout=40, check=False,
        )  # fmt: skip
        self.sweep.take("stderr", " ".join(words), done.stderr)
        if "run" not in words:
            self.sweep.take("stdout", " ".join(words), done.stdout)

    async def by_commands(self) -> None:
        commands = (
            "servers list --json", "servers list", "servers show far --json", "servers show near",
            "servers test --json", "-vv servers test near", "check", "-vv tools list", "secrets list --json",
            "-vv call mcp://far/echo -a do=500", "call mcp://far/echo -a do=fault --json",
            "-vv call mcp://near/x", "-vv call mcp://unset/echo", "run drill", "-vv run drill --json",
            "audit tail --json", "audit export", "audit verify", "doctor", "doctor --json",
            "-vv call mcp://proxied/x", "servers show other", "servers show proxied",
        )  # fmt: skip
        for line in commands:
            words = line.split()
            await asyncio.to_thread(self.by_command, *words)


@pytest.fixture
async def drill(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Drill:
    """All drills done and everything taken."""
    (root := tmp_path / "project").mkdir()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*Authority(tmp_path).issue("127.0.0.1"))  # which nobody here believes
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    # The plainest of handlers, at the root, for everything: ours must be clean before they get there.
    caplog.set_level(logging.DEBUG)
    try:
        async with Site(on_call(_echo, modern)) as site, Site(modern, tls=tls) as other:
            drill = Drill(root, site, other)
            ring.set_password("git", "me", drill.known["keyring"])
            await drill.in_python()
            await drill.in_service()
            await drill.tokens()
            await drill.by_commands()
            drill.sweep.take("logs", caplog.text)
            drill.sweep.take_files(root, but=drill.homes)
            return drill
    finally:
        keyring.set_keyring(before)


SINKS = {
    "audit", "database", "environment of another server", "errors", "events", "failures of runs", "logs",
    "reports", "repr", "served", "stderr", "stdout", "tracebacks",
}  # fmt: skip


@pytest.mark.timeout(240)  # eighteen commands, each a process
async def test_no_secret_is_found_anywhere(drill: Drill, figure: Callable[[str], None]) -> None:
    sweep = drill.sweep
    hits = sweep.hits(drill.known)
    figure(
        f"G8: {len(drill.known)} secrets, {len(sweep.seen)} sinks, {sweep.size // 1024} KiB written,"
        f" {len(encodings(CONTROL))} spellings: {len(hits)} found"
    )
    assert hits == []
    alive = {sink for sink, _, _ in sweep.hits({"control": CONTROL})}
    assert alive >= SINKS  # what the records of runs keep is in the database
    assert sweep.seen.keys() >= SINKS | {"tokens.json"}
    planted = 0
    for sink in sorted(sweep.seen):
        for kind, name in (("vault", one) for one in encodings("")):
            leaky = Sweep()
            data = sweep.seen[sink]
            leaked = encodings(drill.known[kind])[name].encode()
            leaky.seen[sink] = (
                data[: len(data) // 2] + leaked[:9] + b"\n" + leaked[9:] + data[len(data) // 2 :]
            )
            assert (sink, kind, name) in leaky.hits(drill.known)
            planted += 1
    figure(f"G8: {planted} of {planted} leaks found that were planted, {len(alive)} sinks shown to be alive")
