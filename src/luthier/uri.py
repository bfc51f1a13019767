"""The address of a tool: `mcp://server/tool`, `builtin://name`, `custom://name`; read, printed, matched."""

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

# Tool names are the server's own and may hold anything. These print as they are, all else is percent-encoded.
_PLAIN = "/:@!$&'()*+,;=._~-"


class ToolUri(msgspec.Struct, frozen=True, order=True, cache_hash=True):
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

    @staticmethod
    def parse(text: str) -> ToolUri:
        """Read an address back. Raises ValueError that says what is wrong with it."""
        return _read(text)

    def __str__(self) -> str:
        return _printed(self)

    def matches(self, pattern: str) -> bool:
        """Whether a pattern (`mcp://git/*`, `*`, `builtin://http`) covers this address.

        As it is printed, or with the tool's name as its server writes it: `mcp://mail/send all` means that
        tool. `*` stands for anything, slashes too, `?` for one character, `[ab]` for either, and the very
        text for itself; case matters.
        """
        wanted = _compiled(pattern).match
        return any(text == pattern or wanted(text) for text in _spellings(self))


@lru_cache(maxsize=4096)  # who calls a tool once calls it again
def _read(text: str) -> ToolUri:
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in SCHEMES:
        raise ValueError(
            f"{text!r} is not a tool address: write mcp://server/tool, builtin://name or custom://name"
        )
    if scheme != "mcp":
        if not rest:
            raise ValueError(f"{text!r} names no tool: write {scheme}://name")
        return ToolUri(cast("Scheme", scheme), "", _unquoted(rest))
    server, slash, name = rest.partition("/")
    if not SERVER_ID.fullmatch(server):
        raise ValueError(f"{text!r}: {server!r} is not a server id (letters, digits, _ and -, at most 64)")
    if not slash or not name:
        raise ValueError(f"{text!r} names no tool: write mcp://{server}/tool")
    return ToolUri("mcp", server, _unquoted(name))


@lru_cache(maxsize=4096)  # printed several times for each call, in records and events
def _printed(uri: ToolUri) -> str:
    name = quote(uri.name, safe=_PLAIN, errors="surrogatepass")  # JSON text may hold lone surrogates
    return f"mcp://{uri.server}/{name}" if uri.scheme == "mcp" else f"{uri.scheme}://{name}"


@lru_cache(maxsize=4096)
def _spellings(uri: ToolUri) -> tuple[str, ...]:
    printed = _printed(uri)
    plain = f"{uri.scheme}://{uri.server}/{uri.name}" if uri.scheme == "mcp" else f"{uri.scheme}://{uri.name}"
    return (printed,) if plain == printed else (printed, plain)


def _unquoted(name: str) -> str:
    try:
        return unquote(name, errors="surrogatepass")
    except UnicodeDecodeError:
        raise ValueError(f"{name!r} has a percent-encoding that is not UTF-8") from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
