"""Pins: what a server's tools were when they were approved, and how what it lists now stands to that.

A tool is pinned by its whole definition. A pin knows the hash of the bytes that it was made of too: nearly
always a list is the same to the byte, and is compared at next to no cost. Pure; the book of pins
(`pin_book.py`) keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.govern.access import Denial
from luthier.govern.canonical import definition_hash
from luthier.tools import JsonObject, Manifest, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.uri import ToolUri

Why = Literal["", "changed", "new", "waiting"]
"""Why a tool is held back; empty where it is not. `waiting`: nothing of its server is approved."""

NO_HASH = "none"
"""In place of the hash of what has no canonical spelling: it is equal to no pin."""


class Pin(msgspec.Struct, frozen=True):
    """One approved definition: what, when (Unix seconds) and by whom.

    `raw` is the hash of the bytes that were listed, empty where there were none. `hash` is empty where nobody
    has needed it yet.
    """

    raw: str
    definition: JsonObject
    at: float
    by: str
    hash: str = ""

    @property
    def full_hash(self) -> str:
        """The hash of the canonical definition."""
        return self.hash or _hash(self.definition)


class Judgement(msgspec.Struct, frozen=True):
    """A manifest with the approved tools only; why the others are held back; pinned ones not listed now."""

    manifest: Manifest
    held: dict[str, Why] = {}
    removed: tuple[str, ...] = ()
    waiting: bool = False

    def why(self, name: str) -> Why:
        """Why the tool of that name is held back."""
        return "waiting" if self.waiting else self.held.get(name, "")


class Reviewed(msgspec.Struct, frozen=True):
    """One tool as it is now (None: not listed), its hash, its pin (None: none) and how they differ."""

    name: str
    why: Literal["", "changed", "new", "removed"]
    hash: str = ""
    tool: Tool | None = None
    pin: Pin | None = None


class Review(msgspec.Struct, frozen=True):
    """All tools of a server, listed and pinned ones. `first`: nothing was pinned yet."""

    server: str
    tools: tuple[Reviewed, ...]
    first: bool
    stored: Any = None  # the pins as they were read: an approval replaces just these

    @property
    def pending(self) -> tuple[Reviewed, ...]:
        """Those that an approval would change."""
        return tuple(tool for tool in self.tools if tool.why)


def is_equal(one: Tool, other: Tool) -> bool:
    """Whether two readings of a tool are the same definition."""
    if one is other or (one.digest and one.digest == other.digest):
        return True
    return hash_of(one) == hash_of(other) != NO_HASH


def held_denial(uri: ToolUri, why: Why) -> Denial:
    """The gate's no to a tool that is held back, for those who may know of it."""
    server, name = uri.server, uri.name
    reason = {
        "changed": f"Tool {name!r} of server {server!r} is not what was approved: its definition changed.",
        "new": f"Tool {name!r} of server {server!r} is new, and waits for approval.",
    }.get(why, f"The tools of server {server!r} wait for approval.")
    approve = f"luthier tools approve {server}" + (f" {name}" if why != "waiting" else "")
    return Denial(
        reason,
        "pins",
        f"pins of server {server!r}",
        f"See it with `luthier tools diff {server}`, then allow it with `{approve}`.",
        "approval",
    )


def hash_of(tool: Tool) -> str:
    """The hash of a tool's definition."""
    return _hash(definition_of(tool))


class Hashes:
    """The hashes of tools' definitions, each worked out once."""

    MOST = 4096

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tool, str]] = {}  # the tools too, so that their ids stay theirs

    @property
    def count(self) -> int:
        """How many are known."""
        return len(self._known)

    def of(self, tool: Tool) -> str:
        """The hash of that very tool."""
        known = self._known.get(id(tool))
        if known is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            known = self._known[id(tool)] = (tool, hash_of(tool))
        return known[1]


def _hash(definition: JsonObject) -> str:
    try:
        return definition_hash(definition)
    except ValueError:
        return NO_HASH


def definition_of(tool: Tool) -> JsonObject:
    """All that the server said of the tool."""
    return tool.raw or {"name": tool.name, "inputSchema": tool.input_schema}


def is_same(tool: Tool, raw: str | None) -> bool:
    """Whether a tool was listed in the very bytes of a pin."""
    return bool(tool.digest) and tool.digest == raw


def fits(tool: Tool, pin: Pin | None) -> bool:
    """Whether the tool is what was pinned. The canonical form is made only where the bytes differ."""
    if pin is None:
        return False
    return is_same(tool, pin.raw) or hash_of(tool) == pin.full_hash != NO_HASH


def judge(manifest: Manifest, raws: Mapping[str, str], pins: Mapping[str, Pin] | None = None) -> Judgement:
    """Hold back what is not as it was pinned.

    `raws` are the hashes of the bytes by name. Where bytes differ, the definitions of `pins` decide.
    """
    held: dict[str, Why] = {}
    for tool in manifest.tools:
        raw = raws.get(tool.name)
        if raw is None:
            held[tool.name] = "new"
        elif not is_same(tool, raw) and not fits(tool, (pins or {}).get(tool.name)):
            held[tool.name] = "changed"
    removed = tuple(sorted(raws.keys() - {tool.name for tool in manifest.tools}))
    if held:
        good = tuple(tool for tool in manifest.tools if tool.name not in held)
        manifest = msgspec.structs.replace(manifest, tools=good)
    return Judgement(manifest, held, removed)


def review(manifest: Manifest, stored: Any) -> Review:
    """Each tool beside its pin, in the order of the list, those no longer listed last. Raises ValueError."""
    there = {} if stored is None else pins_in(stored)
    listed = [_reviewed(tool, there.get(tool.name)) for tool in manifest.tools]
    names = {tool.name for tool in manifest.tools}
    gone = [Reviewed(name, "removed", pin=pin) for name, pin in sorted(there.items()) if name not in names]
    return Review(manifest.server, (*listed, *gone), stored is None, stored)


def _reviewed(tool: Tool, pin: Pin | None) -> Reviewed:
    if pin is not None and fits(tool, pin):
        return Reviewed(tool.name, "", pin.full_hash, tool, pin)
    return Reviewed(tool.name, "new" if pin is None else "changed", hash_of(tool), tool, pin)


def pinned(tools: Iterable[Tool], *, at: float, by: str) -> dict[str, Pin]:
    """Pins for these tools."""
    return {tool.name: Pin(tool.digest, definition_of(tool), at, by) for tool in tools}


def stored(pins: Mapping[str, Pin]) -> dict[str, Any]:
    """Pins as a value of the store. Their definitions are not copied."""
    return {name: msgspec.structs.asdict(pin) for name, pin in pins.items()}


def pins_in(value: Any) -> dict[str, Pin]:
    """The pins in a stored value. Raises ValueError where it holds none that can be read."""
    return msgspec.convert(value, dict[str, Pin])
