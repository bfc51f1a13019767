"""Labels in the shape of a taint registry: for each thing that is not trusted, what it came from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.taint.label import Integrity

if TYPE_CHECKING:
    from luthier.taint.label import Label


class TaintEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One origin of a value that is not trusted. `created_at` is when the value was made, in UTC."""

    source: Literal["mcp_tool", "custom_tool", "derived"]
    tool_name: str = ""
    server_id: str = ""
    agent_id: str = ""
    created_at: str = ""

    def to_json(self) -> dict[str, str]:
        """The entry as plain JSON values."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def entries_of(label: Label, *, agent: str = "", at: float = 0.0) -> tuple[TaintEntry, ...]:
    """An entry for each source of what is not trusted, in a stable order; none for what is."""
    if label.integrity is Integrity.trusted:
        return ()
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    entries = {
        (source.server, source.tool): TaintEntry(
            source="mcp_tool" if source.server else "custom_tool",
            tool_name=source.tool,
            server_id=source.server,
            agent_id=agent,
            created_at=made,
        )
        for source in label.sources
    }
    if not entries:
        return (TaintEntry(source="derived", agent_id=agent, created_at=made),)
    return tuple(entry for _, entry in sorted(entries.items()))
