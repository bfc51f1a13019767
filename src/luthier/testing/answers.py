"""What a mock answers: the value that was written, as the behaviour of a server in memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from luthier.errors import MockError, WireError
from luthier.wire import Bytes, Delay, Drop, Fail, Hang, Progress, Result

_AS_THEY_ARE = (Bytes, Drop, Fail, Hang, Result, WireError)
_OF_ERRORS = frozenset({"isError", "content", "structuredContent"})
_OF_FAILURES = frozenset({"failed", "error"})

Trouble = Callable[[BaseException], None]
"""Told what the test must hear of, whatever the ensemble makes of it."""


class Sequence:
    """Another answer for each call, in order. A call beyond the last is an error of the test."""

    def __init__(self, *answers: Any) -> None:
        self._left = list(answers)
        self._used = 0

    def __call__(self, _: Mapping[str, Any]) -> Any:
        if not self._left:
            message = f"The sequence of a mock is used up: there is no answer to call {self._used + 1}."
            raise MockError(message, hint="Give the sequence more answers.")
        self._used += 1
        return self._left.pop(0)


def behaviour(answer: Any, trouble: Trouble) -> Any:
    """What a MemoryServer is to do for this answer of a mock.

    A callable gets the arguments; what it gives, or awaits, is an answer in turn. An exception fails the
    call; `{"isError": True, "content": …}` is the tool's own error; `{"failed": True, "error": …}` fails the
    call as well. Any other value is the content, exactly.
    """
    match answer:
        case Delay() | Progress():
            return _later(answer, behaviour(answer.then, trouble))
        case _ if isinstance(answer, _AS_THEY_ARE):
            return answer
        case BaseException():
            return Fail(str(answer) or type(answer).__name__)
        case Mapping() if isinstance(answer.get("isError"), bool) and answer.keys() <= _OF_ERRORS:
            return _result(answer)
        case Mapping() if answer.get("failed") is True and answer.keys() <= _OF_FAILURES:
            return Fail(str(answer.get("error", "the mock says so")))
        case _ if callable(answer):
            return _asked(answer, trouble)
        case _:
            return content_result(answer)


def _later(answer: Delay | Progress, then: Any) -> Any:
    if callable(then):
        return lambda arguments: msgspec.structs.replace(answer, then=then(arguments))
    return msgspec.structs.replace(answer, then=then)


def _asked(function: Callable[[dict[str, Any]], Any], trouble: Trouble) -> Callable[[dict[str, Any]], Any]:
    """The function as a tool: what it gives is an answer in turn, and what it raises fails the call."""

    def failed(error: Exception) -> Any:
        if isinstance(error, MockError | AssertionError):
            trouble(error)
        return behaviour(error, trouble)

    async def awaited(found: Any, arguments: dict[str, Any]) -> Any:
        try:
            return made(await found, arguments)
        except Exception as error:  # noqa: BLE001  (what a mock raises is its answer)
            return failed(error)

    def made(found: Any, arguments: dict[str, Any]) -> Any:
        known = behaviour(found, trouble)
        return known(arguments) if callable(known) else known

    def ask(arguments: dict[str, Any]) -> Any:
        try:
            found = function(arguments)
        except Exception as error:  # noqa: BLE001  (likewise)
            return failed(error)
        return awaited(found, arguments) if inspect.isawaitable(found) else made(found, arguments)

    return ask


def _result(answer: Mapping[str, Any]) -> Result:
    content = answer.get("content", [])
    if not _are_blocks(content):
        content = [_text(content)]
    return Result({**answer, "content": content})


def content_result(value: Any) -> Result:
    """The result whose content is exactly this value."""
    if isinstance(value, str) and value.lstrip()[:1] not in ("{", "["):
        return Result({"content": [_text(value)], "isError": False})
    blocks = [] if value is None else [_text(value)]  # text beside null would be the value
    return Result({"content": blocks, "structuredContent": value, "isError": False})


def _are_blocks(content: Any) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, Mapping) and "type" in block for block in content
    )


def _text(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"type": "text", "text": text}
