"""A token that the entry names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from luthier.errors import ConnectError

if TYPE_CHECKING:
    from luthier.secrets import Secret

_TOKEN = re.compile(r"[\x21-\x7e]+")


def bearer(token: Secret) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.reveal()}"}


def checked(token: Secret | None, *, server: str) -> Secret:
    """The token, if it can be sent. Raises ConnectError, never to be retried: nothing is sent without one."""
    if token is not None and _TOKEN.fullmatch(token.reveal()):
        return token
    fault = "holds characters that no header may hold" if token else "is empty"
    raise ConnectError(
        f"Server {server!r}: the bearer token {fault}, so nothing is sent.",
        server=server,
        phase="login",
        retryable=False,
        hint="Check auth.token of its entry and the variable that it names.",
    )
