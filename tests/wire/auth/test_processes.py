"""Processes that share a file of tokens: a refresh token that is good once is used once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.wire.auth import FileTokens, Grant, Tokens
from luthier.wire.auth.factory import account_of
from luthier.wire.auth.tokens import Registration

if TYPE_CHECKING:
    from tests.wire.auth.authority import Authority

RENEWER = Path(__file__).with_name("renewer.py")
AUTH = Auth(type="oauth", interactive=True)


async def start(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        RENEWER,
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_two_processes_renew_a_rotating_token_once(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / ".luthier" / "tokens.json"
    given = authority.issue(refresh=True)
    grant = Grant(
        issuer=authority.issuer,
        token_endpoint=f"{authority.issuer}/token",
        registration=Registration(client_id="client-1"),
        tokens=Tokens(
            access=Secret(given["access_token"]),
            refresh=Secret(given["refresh_token"]),
            expires_at=1.0,
            renew_at=1.0,
        ),
    )
    key = account_of(AUTH, server="lute", url=authority.resource).key
    await FileTokens(file).save(key, grant)
    authority.hold = authority.all_ready  # the first is answered only when both are there
    words = (str(file), authority.resource, f"{authority.issuer}/ready")
    processes = [await start(*words) for _ in range(2)]
    outcomes = await asyncio.wait_for(asyncio.gather(*(process.communicate() for process in processes)), 50)
    assert outcomes == [(b"Bearer access-2", b"")] * 2
    assert [asked.form["refresh_token"] for asked in authority.asked] == ["refresh-1"]
    kept = await FileTokens(file).load(key)
    assert kept is not None
    assert kept.tokens is not None
    assert kept.tokens.refresh == Secret("refresh-2")
