"""The model port: one turn there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from luthier.models.messages import Answer, Turn


class Model(Protocol):
    """The models of one provider. The deadline is the caller's: it cancels, and the connection is closed."""

    async def turn(self, turn: Turn, /) -> Answer:
        """Ask once; nothing is repeated. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...
