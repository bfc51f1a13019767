"""Which lock stands before which address. What is not named here is behind the project's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.serve.bearing import WELL_KNOWN
from luthier.serve.locks import Open, Optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.serve.door import Scope
    from luthier.serve.locks import Lock
    from luthier.serve.triggers import Trigger


class Addresses:
    """The locks of one project. `tokens` is that of all its clients."""

    def __init__(self, tokens: Lock, triggers: Sequence[Trigger] = ()) -> None:
        self._tokens = tokens
        self._maybe = Optional(tokens)
        self._open = Open()
        self._triggers = triggers

    def of(self, scope: Scope) -> tuple[Lock, str]:
        """The lock, and the role that its caller must have besides."""
        path: str = scope["path"]
        match path.split("/", 2)[1:2]:
            case ["mcp"]:
                return self._tokens, "run"
            case ["health"]:
                return self._maybe, ""
            case ["callback"]:
                return self._open, ""  # the token that it takes is part of the address
            case [".well-known"] if path == WELL_KNOWN or path.startswith(f"{WELL_KNOWN}/"):
                return self._open, ""
        for trigger in self._triggers:
            if trigger.fits(scope):
                return trigger.lock, "run"
        return self._tokens, ""
