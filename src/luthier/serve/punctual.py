"""Connections on which a request comes whole within its time, and no more of them than there is room for.

Else whoever opens many and says nothing, or half of something, would take all descriptors of the process, and
neither the store nor the audit log could be opened any more. uvicorn bounds only the pause between requests.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

from luthier.redaction import logger

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

    from luthier.clock import Clock, Timer

PATIENCE = 60
"""Seconds in which a request has to come whole, its body with it."""

_log = logger("luthier.serve")


def room() -> int:
    """Connections at once: half of the descriptors that the process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


def punctual(clock: Clock, most: int) -> Any:
    """The class of such connections, for uvicorn."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Punctual(H11Protocol):
        _timer: Timer | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                _log.warning("a connection was closed: there are %s already", most)
                transport.abort()
            self._expect()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._expect()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _expect(self) -> None:
            cycle: RequestResponseCycle | None = self.cycle
            if cycle is not None and not cycle.more_body and not cycle.response_complete:
                self._stop()  # it is here, and is being answered
            elif self._timer is None and not self.transport.is_closing():
                self._timer = clock.call_later(PATIENCE, self._late)

        def _late(self) -> None:
            _log.warning("a connection was closed: no whole request came within %s s", PATIENCE)
            self.transport.close()

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Punctual
