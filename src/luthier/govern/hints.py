"""What is known of what a tool does: the operator's words, a trusted server's, and else the worst. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.spec import ServerEntry
    from luthier.tools import Tool

WORST = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
"""The protocol's own defaults, for tools that say nothing."""


def believed(tool: Tool, entry: ServerEntry | None) -> dict[str, bool]:
    """The four hints as far as they may be relied on. A server that is not trusted can only make them worse.

    `entry` None: a tool of this process, which speaks the truth.
    """
    if entry is None or entry.trusted:
        return {**claimed(tool, entry), **_told(tool, entry)}
    return {**WORST, **_told(tool, entry)}


def claimed(tool: Tool, entry: ServerEntry | None) -> dict[str, bool]:
    """The four hints as the tool gives them itself; the operator's words stand above its own."""
    hints = {name: value for name in WORST if isinstance(value := tool.annotations.get(name), bool)}
    if hints.get("readOnlyHint"):  # what changes nothing destroys nothing
        hints.setdefault("destructiveHint", False)
        hints.setdefault("idempotentHint", True)
    return {**WORST, **hints, **_told(tool, entry)}


def _told(tool: Tool, entry: ServerEntry | None) -> dict[str, bool]:
    """What the entry says itself."""
    if entry is None:
        return {}
    if tool.name in entry.tools.read_only:
        return {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    return {"idempotentHint": True} if tool.name in entry.tools.idempotent else {}
