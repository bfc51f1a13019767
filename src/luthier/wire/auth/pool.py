"""What a process holds of tokens in its memory, for all servers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.wire.auth.healed import Healed
from luthier.wire.auth.single import Single

if TYPE_CHECKING:
    from luthier.wire.auth.tokens import Tokens


class Pool:
    """The tokens of all clients of one process, and the requests for them that are under way."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def of(self, name: str) -> Kept:
        return self._kept.setdefault(name, Kept())

    def close(self) -> None:
        """Wait for no person any more: logins that are under way come to nothing."""
        for kept in self._kept.values():
            kept.login.stop()


class Kept:
    """The newest tokens of one client."""

    def __init__(self) -> None:
        self.tokens: Tokens | None = None
        self.asking: Single[Tokens] = Single()
        self.login: Single[Tokens] = Single()
        self.healed = Healed()
