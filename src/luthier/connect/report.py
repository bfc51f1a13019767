"""What trying a server out came to."""

from __future__ import annotations

from typing import Any

import msgspec

from luthier.errors import WireError
from luthier.tools import DroppedTool


class ServerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one server: what it offers, or the error that it failed with.

    `transport` and `protocol` are what it was spoken to in, empty when no session came to stand. `seconds` is
    the time that all of it took.
    """

    server: str
    transport: str = ""
    protocol: str = ""
    name: str = ""  # what it calls itself
    tools: tuple[str, ...] = ()
    dropped: tuple[DroppedTool, ...] = ()
    isolation: tuple[str, ...] = ()  # what its process is kept to
    seconds: float = 0.0
    error: WireError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        found: dict[str, Any] = {
            "id": self.server,
            "ok": self.ok,
            "transport": self.transport,
            "protocol": self.protocol,
            "name": self.name,
            "tools": list(self.tools),
            "dropped": [{"name": tool.name, "reason": tool.reason} for tool in self.dropped],
            "isolation": list(self.isolation),
            "seconds": round(self.seconds, 3),
        }
        if self.error is not None:
            error = self.error
            found["error"] = {
                "kind": error.kind,
                "message": error.message,
                "hint": error.hint,
                **error.facts(),
            }
        return found
