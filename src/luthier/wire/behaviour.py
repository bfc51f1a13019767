"""What a tool of the server in memory does when it is called, besides giving a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from luthier.tools import Reply


class Hang(msgspec.Struct, frozen=True):
    """Never answer."""


class Listen(msgspec.Struct, frozen=True):
    """Acknowledge a subscription and keep it open."""


class Drop(msgspec.Struct, frozen=True):
    """End the connection instead of answering."""


class Delay(msgspec.Struct, frozen=True):
    """Wait so many seconds by the server's clock, then do what `then` says."""

    seconds: float
    then: Any = None


class Progress(msgspec.Struct, frozen=True):
    """Report progress `steps` times, `every` seconds apart, then do what `then` says."""

    steps: int
    every: float = 0.0
    then: Any = None


class Fail(msgspec.Struct, frozen=True):
    """Answer with a JSON-RPC error."""

    message: str
    code: int = -32603
    data: Any = None


class Result(msgspec.Struct, frozen=True):
    """Answer with exactly this result."""

    value: Any


class Bytes(msgspec.Struct, frozen=True):
    """Answer with exactly these bytes, newline included; `$ID` in them becomes the id of the request."""

    data: bytes


def result_of(value: Any) -> dict[str, Any]:
    """The result of `tools/call` that delivers this value as its content.

    A Reply, and a mapping that looks like a result, are taken as they are; an exception becomes `isError`.
    """
    match value:
        case Reply():
            whole: dict[str, Any] = {"content": value.blocks, "isError": value.is_error}
            return whole if value.structured is UNSET else {**whole, "structuredContent": value.structured}
        case Exception():
            return {"content": [_text(str(value) or type(value).__name__)], "isError": True}
        case str():
            return {"content": [_text(value)], "isError": False}
        case None:
            return {"content": [], "structuredContent": None, "isError": False}
        case Mapping() if _looks_like_result(value):
            return dict(value)
        case _:
            text = msgspec.json.encode(value).decode()
            return {"content": [_text(text)], "structuredContent": value, "isError": False}


def _looks_like_result(value: Mapping[str, Any]) -> bool:
    blocks = value.get("content")
    if isinstance(blocks, Sequence) and not isinstance(blocks, str):
        return all(isinstance(block, Mapping) and "type" in block for block in blocks)
    return isinstance(value.get("isError"), bool)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
