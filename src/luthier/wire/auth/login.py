"""A login that a person asked for, before anything needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.errors import HttpError
from luthier.wire.auth.adapter import TIMEOUT
from luthier.wire.auth.challenge import Challenge, read_challenge
from luthier.wire.auth.factory import Means, account_of
from luthier.wire.auth.metadata import refused
from luthier.wire.http.facts import Asked
from luthier.wire.http.target import HttpTarget

if TYPE_CHECKING:
    from luthier.spec.project import Auth
    from luthier.wire.auth.factory import Show
    from luthier.wire.auth.tokens import Grant, TokenStore

_UNAUTHORIZED = 401
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
_BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"luthier","version":"1"}}}'
)


async def log_in(auth: Auth, means: Means, tokens: TokenStore, show: Show) -> Grant:
    """Ask the server what it wants, let the person log in, and keep what comes of it. Raises WireErrors."""
    account = account_of(auth, server=means.server, url=means.url)
    dance = means.dance(account, show)
    challenge = await _asked(means)
    try:
        grant = await dance(_UNAUTHORIZED, challenge, await tokens.load(account.key))
        await tokens.save(account.key, grant)
    except OSError as error:
        fault = f"the login cannot be kept: {error.strerror}"
        raise refused(means.server, fault, hint="Check the folder .luthier of the project.") from error
    return grant


async def _asked(means: Means) -> Challenge:
    """What the server answers to a stranger; one that lets strangers in may say elsewhere how to log in."""
    target = HttpTarget(
        server=means.server,
        url=means.url,
        tls=means.tls,
        proxy=means.proxy,
        timeout=TIMEOUT,
        reach=means.rules.reach(means.url),
    )
    asked = Asked(phase="login", method="initialize")
    try:
        async with Deadline(means.clock, TIMEOUT):
            answer = await means.client.open(target, asked, "POST", means.url, _HEADERS, _BODY)
    except (TimeoutError, HttpError):
        return Challenge()
    answer.drop()
    return read_challenge(answer.headers.get("WWW-Authenticate", ""))
