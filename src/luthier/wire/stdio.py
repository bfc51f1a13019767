"""The stdio transport: a server as a child process, one JSON message a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.wire.transport import Outgoing, Receiver


class StdioLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server. `argv[0]` is resolved already, `env` is complete, `cwd` None means ours."""

    server: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None = None
    max_message_bytes: int = 10 * 1024 * 1024


class StdioTransport:
    def __init__(
        self, launch: StdioLaunch, clock: Clock, on_noise: Callable[[str], None] | None = None
    ) -> None:
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
