"""One MCP session with one server, whatever revision it speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from luthier.errors import WireError
    from luthier.tools import Manifest, Reply

OnProgress = Callable[[float, float | None, str], None]
"""Progress so far, total if known, message."""

Answerer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes the params of a server's request and gives its result."""


class Handlers(msgspec.Struct, frozen=True, kw_only=True):
    """What a session does for its server. A request without its handler is refused politely."""

    sampling: Answerer | None = None
    elicitation: Answerer | None = None
    roots: Answerer | None = None
    on_tools_changed: Callable[[], None] | None = None
    on_noise: Callable[[str], None] | None = None


class Session:
    """A standing session. Calls may be made at once from any task of its loop. Raises WireErrors only."""

    server: str
    version: str
    modern: bool
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str

    async def list_tools(self, *, timeout: float | None) -> Manifest:
        raise NotImplementedError

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None,
        timeout_max: float | None = None,
        meta: dict[str, Any] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Reply:
        raise NotImplementedError

    async def ping(self, *, timeout: float) -> None:
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        raise NotImplementedError

    async def wait_closed(self) -> WireError | None:
        """Return when the session has ended: why, or None if it was closed on purpose."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the session and its server. Always ends, within a bound."""
        raise NotImplementedError
