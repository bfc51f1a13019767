"""The transport port: carries single JSON-RPC messages to one server and hands back whatever comes.

A transport knows how to reach the server and nothing about the protocol above. A pipe writes every message to
the same stream; HTTP opens a request for each and ends it when it is cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.secrets import Secret

if TYPE_CHECKING:
    from luthier.errors import WireError


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message to send: `data` is one line of JSON without its newline, the rest is for HTTP headers."""

    data: bytes
    id: int | None = None  # None: a notification, or an answer to the server
    method: str = ""
    name: str = ""  # of the tool, prompt or resource
    version: str = ""  # of the protocol; empty until it is settled
    mirrored: dict[str, str] | None = None  # headers that repeat arguments
    headers: dict[str, Secret] | None = None  # that the caller gave


class Routing(msgspec.Struct, frozen=True, gc=False):
    """What a request's headers say besides its method."""

    name: str = ""  # what it is about, where that is not the tool
    mirrored: dict[str, str] | None = None  # headers that repeat arguments
    headers: dict[str, Secret] | None = None  # that the caller gave


PLAIN = Routing()


class Receiver(Protocol):
    """Who takes what comes in. Called on the loop, never from within `send`."""

    def message(self, data: bytes) -> None:
        """One frame, not yet looked at."""

    def response(self, id: int | None, data: bytes) -> bool:
        """One whole message, which came in the response to that request; None: of the server's own accord.

        Whether the request is settled, so that nothing more of its response matters.
        """

    def oversized(self, head: bytes, tail: bytes, size: int) -> None:
        """A frame over the limit, thrown away but for its first and last bytes."""

    def failed(self, id: int, error: WireError) -> None:
        """That request will have no answer."""

    def ended(self, error: WireError | None) -> None:
        """Nothing more will come. None: because `close` was called. Told once."""


class Transport(Protocol):
    """One way to one server, used once."""

    @property
    def stderr_tail(self) -> str:
        """The end of what the server said beside the protocol; empty where there is no such thing."""

    async def start(self, receiver: Receiver) -> None:
        """Reach the server. Raises ConnectError."""

    def send(self, message: Outgoing) -> None:
        """Send, or queue for sending; never blocks. Does nothing when the way is closed."""

    def cancel(self, id: int, notice: Outgoing, /) -> None:
        """The request of that id is no longer waited for; `notice` is the protocol's own word for it."""

    @property
    def congested(self) -> bool:
        """Whether more is queued than should be; a sender then awaits `drain` first."""

    async def drain(self) -> None:
        """Return once it is no longer congested, or closed."""

    async def close(self) -> None:
        """End the way and all that it started. Always ends, within a bound; harmless when repeated."""
