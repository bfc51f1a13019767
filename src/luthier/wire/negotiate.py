"""Opening a session: which era does the server speak?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.session import Handlers, Session
    from luthier.wire.transport import Transport


async def open_session(
    start: Callable[[], Transport],
    *,
    server: str,
    clock: Clock,
    timeout: float,
    pinned: str | None = None,
    remembered: str | None = None,
    handlers: Handlers | None = None,
) -> Session:
    """A session within `timeout` seconds, or ConnectError. `start` makes a fresh transport and may be called twice."""
    raise NotImplementedError
