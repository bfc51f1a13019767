"""A server in memory that speaks the real protocol in bytes, and the transport to it: a double that is product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.wire.era import LATEST_MODERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.wire.transport import Outgoing, Receiver


class MemoryServer:
    """`tools` maps a name to what a call does: a value, a callable, an Exception or one of the behaviours below."""

    def __init__(
        self,
        server_id: str,
        tools: Mapping[str, Any] | None = None,
        *,
        era: str = LATEST_MODERN,  # a revision, or "modern" for the latest
        descriptions: Mapping[str, str] | None = None,
        schemas: Mapping[str, dict[str, Any]] | None = None,
        output_schemas: Mapping[str, dict[str, Any]] | None = None,
        annotations: Mapping[str, dict[str, Any]] | None = None,
        instructions: str = "",
        clock: Clock | None = None,
    ) -> None:
        raise NotImplementedError

    def transport(self) -> MemoryTransport:
        """A fresh way to this server: hand it to `open_session` as `start`."""
        raise NotImplementedError


class MemoryTransport:
    def __init__(self, server: MemoryServer) -> None:
        raise NotImplementedError

    async def start(self, receiver: Receiver) -> None:
        raise NotImplementedError

    def send(self, message: Outgoing) -> None:
        raise NotImplementedError

    def cancel(self, id: int, notice: Outgoing) -> None:
        raise NotImplementedError

    @property
    def congested(self) -> bool:
        raise NotImplementedError

    async def drain(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError
