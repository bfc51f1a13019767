"""What comes back from a call: a raw reply from the wire, a labelled result from the gate, or a refusal.

A reply becomes a result in one place, the gate's funnel; from there on nothing is unlabelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from luthier.taint import TRUSTED, UNTRUSTED, Label
from luthier.uri import ToolUri

PARSED_TEXT_LIMIT = 1024 * 1024
"""A single text block up to this many characters that holds a JSON object or array is read as that value."""

_MISSING = msgspec.UNSET


class Reply(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A server's answer as it was read. `notes` says what was odd in it and how it was taken.

    `label` is what a tool of this process knows of its answer: it is joined into the result's.
    """

    blocks: list[dict[str, Any]] = msgspec.field(default_factory=list)
    structured: Any = _MISSING
    is_error: bool = False
    meta: dict[str, Any] | None = None
    input_required: dict[str, Any] | None = None  # the whole result of an `input_required` answer
    notes: tuple[str, ...] = ()
    label: Label = TRUSTED

    @cached_property
    def content(self) -> Any:
        """The value of the answer.

        The structured value if there is one; else the JSON object or array that a single text block up to 1
        MiB holds; else the text of a single text block; else the list of blocks.
        """
        if self.structured is not _MISSING:
            return self.structured
        if len(self.blocks) != 1 or self.blocks[0].get("type") != "text":
            return self.blocks
        text = self.blocks[0].get("text")
        if not isinstance(text, str):
            return self.blocks
        return _parsed(text)


def _parsed(text: str) -> Any:
    if len(text) > PARSED_TEXT_LIMIT or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # a lone surrogate; nested too deep
        return text


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A governed result. `duration` is milliseconds from intent to answer; `label` is where it came from."""

    uri: ToolUri
    call_id: str
    reply: Reply
    duration: float
    label: Label = UNTRUSTED

    @property
    def content(self) -> Any:
        return self.reply.content

    @property
    def blocks(self) -> list[dict[str, Any]]:
        return self.reply.blocks

    @property
    def structured(self) -> Any:
        """The structured value, None where there is none."""
        return None if self.reply.structured is _MISSING else self.reply.structured

    @property
    def is_error(self) -> bool:
        return self.reply.is_error

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            **self.envelope.fields(),
            "blocks": self.blocks,
            "label": self.label.to_json(),
            "notes": list(self.reply.notes),
            "call": self.call_id,
        }

    @property
    def envelope(self) -> Envelope:
        """The result as a workflow sees it."""
        return Envelope(
            {
                "tool": self.uri.name,
                "server": self.uri.server,
                "content": self.content,
                "duration": self.duration,
                "isError": self.is_error,
            },
            self.blocks,
        )


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's no: a value that a model or a workflow can read.

    `kind` is denied, approval or arguments. `reason` is for the caller; `rule`, `place` and `hint` are for
    the operator. `request` is set where the same call may be made again once that has been decided.
    """

    uri: ToolUri
    call_id: str
    kind: str
    reason: str
    rule: str = ""
    place: str = ""
    hint: str = ""
    request: str = ""


class Envelope(Mapping[str, Any]):
    """`{tool, server, content, duration, isError}`; a name it lacks is looked up in `content`. Read-only.

    Members read as items and as attributes: `x["isError"]`, `x.isError`, `x.number`. Where the content has
    no member `blocks`, that name gives the blocks as the server sent them.
    """

    __slots__ = ("_blocks", "_fields")

    def __init__(self, fields: Mapping[str, Any], blocks: list[dict[str, Any]] | None = None) -> None:
        self._fields = dict(fields)
        self._blocks = blocks

    def __getitem__(self, name: str) -> Any:
        if name in self._fields:
            return self._fields[name]
        content = self._fields["content"]
        if isinstance(content, Mapping) and name in content:
            return content[name]
        if name == "blocks" and self._blocks is not None:
            return self._blocks
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:  # not there yet: it is being copied
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            message = f"the result of {self._fields.get('tool', 'a model')!r} has no {name!r}"
            raise AttributeError(message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Envelope({self._fields!r})"

    def fields(self) -> dict[str, Any]:
        """All five fields as a plain mapping."""
        return dict(self._fields)

    def raw_blocks(self) -> list[dict[str, Any]] | None:
        """The blocks as the server sent them; None where the envelope was made without."""
        return self._blocks


_SCALARS = frozenset({str, int, float, bool, type(None)})


def delivered(value: Any) -> Any:
    """The value as it leaves for elsewhere, copied: every envelope in it replaced by its content."""
    if type(value) in _SCALARS:
        return value
    whole = [value]
    waiting: list[tuple[dict[Any, Any] | list[Any], Any]] = [(whole, 0)]
    while waiting:  # a loop, because values may be nested deeper than Python calls functions
        holder, place = waiting.pop()
        item = holder[place]
        if type(item) in _SCALARS:
            continue
        while isinstance(item, Envelope):
            item = item["content"]
        if isinstance(item, dict):
            item = dict(item)
            waiting.extend((item, key) for key in item)
        elif isinstance(item, list | tuple):
            item = list(item)
            waiting.extend((item, index) for index in range(len(item)))
        holder[place] = item
    return whole[0]
