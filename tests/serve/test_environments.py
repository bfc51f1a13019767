"""Who may be served where, in both environments: no token, no service; no public address in development."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from luthier import Runtime
from luthier.cli.app import app
from luthier.errors import SpecError
from luthier.serve import Listening, Service, token_hash
from luthier.testing import MemoryAudit

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENTS = ("development", "production")
LOOPBACK, ALSO_LOOPBACK, PUBLIC = "127.0.0.1:0", "[::1]:0", "0.0.0.0:0"
TOKENS = {"serve": {"clients": {"ci": [token_hash("c" * 40)]}}}

NO_TOKEN, NOT_HERE = "Nobody has a token", "can be reached from other machines"

# The row of `luthier serve`: environment, whether somebody has a token, address, and what is said against it.
ROW = [
    *((environment, {}, address, NO_TOKEN) for environment in ENVIRONMENTS for address in (LOOPBACK, PUBLIC)),
    *((environment, TOKENS, LOOPBACK, "") for environment in ENVIRONMENTS),
    *((environment, TOKENS, ALSO_LOOPBACK, "") for environment in ENVIRONMENTS),
    ("development", TOKENS, PUBLIC, NOT_HERE),
    ("production", TOKENS, PUBLIC, ""),
]


@pytest.mark.parametrize(("environment", "serve", "address", "why"), ROW)
async def test_where_a_project_is_served(
    tmp_path: Path, environment: str, serve: dict[str, Any], address: str, why: str
) -> None:
    project = {"environment": environment, **serve}
    async with Runtime.open(project, root=tmp_path, audit=MemoryAudit()) as rt:
        if why:
            with pytest.raises(SpecError, match=why):
                Listening.on(address, Service(rt), rt.project, rt.environ)
            return
        listening = Listening.on(address, Service(rt), rt.project, rt.environ)
        serving = asyncio.create_task(listening.serve())
        host, _, port = listening.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"GET /mcp/tools HTTP/1.1\r\nHost: " + listening.address.encode() + b"\r\n\r\n")
        assert b" 401 " in await reader.readline()  # there, and only for who has a token
        writer.close()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("address", [LOOPBACK, PUBLIC])
def test_the_command_refuses_without_a_token_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: str, address: str
) -> None:
    (tmp_path / "luthier.yaml").write_text(f"environment: {environment}\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", "--http", address])
    assert done.exit_code == 2
    assert NO_TOKEN in done.stderr
    assert "luthier serve --new-token" in done.stderr
