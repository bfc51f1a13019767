"""The address of a tool: `mcp://server/tool`, `builtin://name` or `custom://name`; parsed, printed, matched, ordered."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Literal, Self, cast, get_args
from urllib.parse import quote, unquote

import msgspec

Scheme = Literal["mcp", "builtin", "custom"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

SERVER_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What a server's id may look like."""

# Tool names are the server's own and may hold anything; these print as they are, everything else percent-encoded.
_PLAIN = "/:@!$&'()*+,;=._~-"


class ToolUri(msgspec.Struct, frozen=True, order=True):
    """One tool's address. `server` is empty for builtin and custom tools. Orders by scheme, server, name."""

    scheme: Scheme
    server: str
    name: str

    @classmethod
    def mcp(cls, server: str, name: str) -> Self:
        return cls("mcp", server, name)

    @classmethod
    def builtin(cls, name: str) -> Self:
        return cls("builtin", "", name)

    @classmethod
    def custom(cls, name: str) -> Self:
        return cls("custom", "", name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address back. Raises ValueError that says what is wrong with it."""
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in SCHEMES:
            message = f"{text!r} is not a tool address: write mcp://server/tool, builtin://name or custom://name"
            raise ValueError(message)
        if scheme != "mcp":
            if not rest:
                message = f"{text!r} names no tool: write {scheme}://name"
                raise ValueError(message)
            return cls(cast("Scheme", scheme), "", unquote(rest))
        server, slash, name = rest.partition("/")
        if not SERVER_ID.fullmatch(server):
            message = f"{text!r}: {server!r} is not a server id (letters, digits, _ and -, at most 64)"
            raise ValueError(message)
        if not slash or not name:
            message = f"{text!r} names no tool: write mcp://{server}/tool"
            raise ValueError(message)
        return cls("mcp", server, unquote(name))

    def __str__(self) -> str:
        name = quote(self.name, safe=_PLAIN)
        return f"mcp://{self.server}/{name}" if self.scheme == "mcp" else f"{self.scheme}://{name}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern (`mcp://git/*`, `*`, `builtin://http`) covers this address; `*` crosses slashes."""
        return bool(_compiled(pattern).match(str(self)))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
