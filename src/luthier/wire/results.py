"""Results of `tools/call` as servers send them: read leniently, nothing lost, every oddity noted."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from luthier.errors import ProtocolError
from luthier.text import one_line
from luthier.tools import Reply
from luthier.wire.codec import value
from luthier.wire.repair import UnreadableError


class TaskStarted(Exception):
    """The server made a task of the call. `raw` is the task as it is now, `id` its name."""

    def __init__(self, raw: Raw, id: str) -> None:
        super().__init__(id)
        self.raw = raw
        self.id = id


class _Result(msgspec.Struct, rename="camel"):
    """Nothing is promised about the types."""

    content: Any = UNSET
    structured_content: Any = UNSET
    is_error: Any = False
    result_type: Any = UNSET
    meta: Any = msgspec.field(name="_meta", default=None)
    task_id: Any = UNSET
    tool_result: Any = UNSET  # what servers before 2024-11-05 sent


_result = msgspec.json.Decoder(_Result)
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*+={0,2}\s*+")
_BLOCKS = 100_000  # in one reply: each costs time here and wherever it goes
_LOOKED_AT = 4096  # characters of either end of base64: a fault is a hint, not worth reading megabytes for
_FALSE = frozenset({"false", "no", "0", ""})


def read_reply(raw: Raw, odd: tuple[str, ...], *, server: str, tool: str, modern: bool) -> Reply:
    """The reply in a raw result; `odd` is what was noted on the way here.

    Raises ProtocolError, and TaskStarted where the result is only a handle.
    """
    try:
        return _reply(raw, odd, server, tool, modern=modern)
    except UnreadableError as error:
        raise ProtocolError(
            f"Server {server!r} answered tools/call {tool!r} with a result that cannot be read: {error}.",
            server=server,
            tool=tool,
        ) from None


def _reply(raw: Raw, odd: tuple[str, ...], server: str, tool: str, *, modern: bool) -> Reply:
    try:
        result, more = value(raw, _result)
    except UnreadableError:
        return _not_a_result(raw, odd)
    if modern and result.result_type is not UNSET and result.result_type != "complete":
        if result.result_type == "task" and isinstance(result.task_id, str):
            raise TaskStarted(raw, result.task_id)
        return _of_another_type(raw, result.result_type, server, tool)
    notes = [*odd, *more]
    structured = result.structured_content
    if structured is None and not (modern and result.content == []):
        structured = UNSET  # in the modern era null is a value, but serializers write it for nothing too
    if result.tool_result is not UNSET and structured is UNSET and result.content is UNSET:
        structured, result.content = result.tool_result, []
        notes.append("toolResult was read as structuredContent")
    return Reply(
        blocks=_blocks(result.content, notes),
        structured=structured,
        is_error=result.is_error if isinstance(result.is_error, bool) else _truth(result.is_error, notes),
        meta=result.meta if isinstance(result.meta, dict) else None,
        notes=tuple(notes),
    )


def _not_a_result(raw: Raw, odd: tuple[str, ...]) -> Reply:
    """A result that is no object; the value itself is kept."""
    content, more = value(raw, _any)
    notes = [*odd, *more, "the result is not an object"]
    return Reply(blocks=_blocks([] if content is None else content, notes), notes=tuple(notes))


def _of_another_type(raw: Raw, kind: Any, server: str, tool: str) -> Reply:
    if kind != "input_required":
        raise ProtocolError(
            f"Server {server!r} answered tools/call {tool!r} with a result of the unknown type "
            f"{one_line(str(kind), 80)!r}.",
            server=server,
            tool=tool,
        )
    whole, notes = value(raw, _any)
    return Reply(input_required=whole, notes=notes)


def _truth(flag: Any, notes: list[str]) -> bool:
    """`isError` that is not true or false."""
    if flag is None:
        return False
    notes.append("isError is not true or false")
    return flag.strip().lower() not in _FALSE if isinstance(flag, str) else bool(flag)


def _blocks(content: Any, notes: list[str]) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        if content is UNSET or content is None:
            notes.append("content is missing" if content is UNSET else "content is null")
            return []
        notes.append("content is not a list")
        content = [content]
    if len(content) > _BLOCKS:
        raise UnreadableError(f"its content is a list of more than {_BLOCKS:,}")
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            if not isinstance(block.get("text"), str):
                _note(notes, "a text block has no text")
        elif kind is None:
            return _mended(content, notes)
        else:
            _check_data(block, notes)
    blocks: list[dict[str, Any]] = content
    return blocks


def _mended(content: list[Any], notes: list[str]) -> list[dict[str, Any]]:
    """The blocks where some are not blocks at all: those become text."""
    blocks: list[dict[str, Any]] = []
    for block in content:
        if isinstance(block, dict):
            if not isinstance(block.get("type"), str):
                _note(notes, "a block without a type was kept as it is")
            blocks.append(block)
        else:
            _note(notes, "a block that is not an object was read as text")
            text = block if isinstance(block, str) else _encode(block).decode()
            blocks.append({"type": "text", "text": text})
    return blocks


def _check_data(block: dict[str, Any], notes: list[str]) -> None:
    """Note base64 that is none; it is kept."""
    resource = block.get("resource")
    data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
    if data is None:
        return
    if not isinstance(data, str) or not _looks_like_base64(data):
        _note(notes, f"the data of a block of type {one_line(str(block['type']), 40)} is not base64")


def _looks_like_base64(data: str) -> bool:
    if len(data) <= 2 * _LOOKED_AT:
        return bool(_BASE64.fullmatch(data)) and len("".join(data.split())) % 4 == 0
    return bool(_BASE64.fullmatch(data[:_LOOKED_AT]) and _BASE64.fullmatch(data[-_LOOKED_AT:]))


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)
