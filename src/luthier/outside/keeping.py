"""What everything that is kept has in common: its label beside it, nothing secret, and pages of names.

A tool that keeps things is a `Keeper`: what it does is done in a thread, and its failures are answers.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StepError, StoreError
from luthier.outside.answers import answer, failure
from luthier.taint import TRUSTED, UNTRUSTED, Confidentiality, Label
from luthier.tools import Tool
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from luthier.tools import Reply, ToolCall

PAGE = 100
LARGEST_PAGE = 1000


class Keeper(ABC):
    """One such tool. `label` is that of a result, before the kept one is joined."""

    tool: Tool
    label = TRUSTED
    timeout: float | None = None

    async def carry(self, call: ToolCall) -> Reply:
        """Do what `action` says."""
        try:
            return answer(*await asyncio.to_thread(self.done, call))
        except (StepError, StoreError) as error:
            return failure(error)

    @abstractmethod
    def done(self, call: ToolCall) -> tuple[dict[str, Any], Label]:
        """What came of it, and its label. Raises StepError and StoreError."""


def keeping_tool(
    name: str, description: str, actions: Iterable[str], properties: dict[str, Any], *, idempotent: bool
) -> Tool:
    """`builtin://storage/NAME`, whose lists come in pages."""
    return Tool(
        uri=ToolUri.builtin(f"storage/{name}"),
        description=description,
        input_schema={
            "type": "object",
            "properties": {
                "action": {"enum": list(actions)},
                **properties,
                "prefix": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE},
                "cursor": {"type": ["string", "null"]},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        annotations={
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": idempotent,
            "openWorldHint": False,
        },
    )


def namespace_of(root: Path, name: object) -> str:
    """What keeps a project's own apart in a store that several share: its name, else its folder."""
    if isinstance(name, str) and name.strip():
        return name.strip()
    return hashlib.sha256(str(root.resolve()).encode(errors="surrogateescape")).hexdigest()[:16]


def sound(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call, whose texts can be written down. Raises StepError for halves of characters."""
    try:
        msgspec.json.encode(call.arguments.value)
    except UnicodeEncodeError:
        raise StepError("arguments", "The arguments hold half a character, which cannot be kept.") from None
    return call.arguments.value


def label_to_keep(call: ToolCall) -> Label:
    """The label of what a call writes: all that went into it. Raises StepError where that is secret."""
    label = call.arguments.whole.join(call.context.control)
    if label.confidentiality is Confidentiality.secret:
        message = f"{call.uri} keeps nothing that is labelled secret: it would lie there in the clear."
        hint = "Secrets are stored by `luthier secrets set NAME`, and read as ${secret:NAME} in luthier.yaml."
        raise StepError("denied", message, hint=hint)
    return label


def kept_label(record: Mapping[str, Any] | None) -> Label:
    """The label beside something kept; that of a stranger's where there is none, or none that can be read."""
    try:
        return UNTRUSTED if record is None else Label.from_json(record["label"])
    except (KeyError, TypeError, ValueError):
        return UNTRUSTED


def page(names: Iterable[str], arguments: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """The names after the cursor that begin as asked, in order, and the cursor of the next page, if any."""
    prefix, after = arguments.get("prefix") or "", arguments.get("cursor") or ""
    limit = arguments.get("limit") or PAGE
    found = sorted(name for name in names if name.startswith(prefix) and name > after)
    return found[:limit], found[limit - 1] if len(found) > limit else None
