"""`luthier servers login`: one dance, and later runs have a token."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

from luthier.clock import SystemClock
from luthier.secrets import Secret, find_keys
from luthier.spec.project import Auth
from luthier.wire.auth import FileTokens
from luthier.wire.auth.factory import account_of
from tests.wire.auth.authority import Authority, running

if TYPE_CHECKING:
    from pathlib import Path

Cli = Callable[..., Result]

ENTRY = """\
mcpServers:
  lute: {{url: {url}, allow_private: true, auth: {{type: oauth, interactive: true{more}}}}}
  plain: {{url: {url}}}
  git: {{command: uvx, args: [mcp-server-git]}}
"""


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    async with running() as found:
        yield found


def write(folder: Path, authority: Authority, more: str = "") -> Path:
    file = folder / "luthier.yaml"
    file.write_text(ENTRY.format(url=authority.resource, more=more))
    return file


async def log_in(folder: Path, *words: str) -> tuple[int, str, str, str]:
    """Run the command, log in where it says: its exit status, that address, stderr, and the last page."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "luthier", *words, "servers", "login", "lute",
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    address = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    page = ""
    if address:
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(address, timeout=10).read().decode())  # noqa: S310
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, address, errors.decode(), page


async def test_a_login_is_kept_for_later_runs(authority: Authority, tmp_path: Path) -> None:
    write(tmp_path, authority)
    status, address, errors, page = await log_in(tmp_path)
    assert status == 0, errors
    assert address.startswith(f"{authority.issuer}/authorize?")
    assert "logged in to lute (tools)" in errors
    assert "access-1" not in errors + address + page
    file = tmp_path / ".luthier" / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    auth = Auth(type="oauth", interactive=True)
    account = account_of(auth, server="lute", url=authority.resource)
    assert b"access-1" not in file.read_bytes()
    keys = find_keys(os.environ, "tokens", project=tmp_path)
    grant = await FileTokens(file, SystemClock(), keys).load(account.key)
    assert grant is not None
    assert grant.tokens is not None
    assert grant.tokens.access == Secret("access-1")


async def test_a_second_login_needs_no_second_registration(authority: Authority, tmp_path: Path) -> None:
    write(tmp_path, authority)
    assert (await log_in(tmp_path))[0] == 0
    assert (await log_in(tmp_path))[0] == 0
    assert len(authority.registered) == 1
    assert len(authority.authorized) == 2


async def test_a_server_that_lets_strangers_in_still_says_where_to_log_in(
    authority: Authority, tmp_path: Path
) -> None:
    authority.accepts = lambda _token: True
    write(tmp_path, authority)
    assert (await log_in(tmp_path))[0] == 0


async def test_a_login_that_is_refused_fails_and_keeps_nothing(authority: Authority, tmp_path: Path) -> None:
    authority.callback = {"code": None, "error": "access_denied"}
    write(tmp_path, authority)
    status, _, errors, _ = await log_in(tmp_path)
    assert status == 1
    assert "the login was refused: access_denied" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / ".luthier" / "tokens.json").exists()


async def test_a_server_that_tells_no_way_to_log_in_is_named(authority: Authority, tmp_path: Path) -> None:
    authority.metadata = {"status": 503}
    write(tmp_path, authority)
    status, address, errors, _ = await log_in(tmp_path)
    assert (status, address) == (1, "")
    assert "'lute'" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("server", "said"),
    [("plain", "has no login"), ("git", "has no login"), ("lut", "Did you mean lute?")],
)
async def test_what_has_no_login_says_so(
    server: str, said: str, authority: Authority, cli: Cli, folder: Path
) -> None:
    write(folder, authority)
    done = cli("servers", "login", server)
    assert done.exit_code == 2
    assert said in done.stderr
