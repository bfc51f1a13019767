"""A model that answers from a script: for tests, and for trying ensembles out without a provider."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from luthier.errors import ModelError
from luthier.models.messages import Answer, Turn, Usage

Scripted = Callable[[Turn], Any]


class ScriptedModel:
    """Answers turn by turn from a list, or every turn by one function of the turn, which may be async.

    An answer is a text, a JSON value, an Answer, an exception to raise, or a function of its turn. `turns`
    keeps what was asked. Tokens are counted as words.
    """

    def __init__(self, answers: Iterable[Any] | Scripted) -> None:
        self._function = answers if callable(answers) else None
        self._answers = [] if callable(answers) else list(answers)
        self.turns: list[Turn] = []
        self.closed = False

    async def turn(self, turn: Turn, /) -> Answer:
        """The next answer. Raises ModelError when there is none left."""
        self.turns.append(turn)
        answer = self._next(turn)
        while callable(answer) or isinstance(answer, Awaitable):
            answer = await answer if inspect.isawaitable(answer) else answer(turn)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Answer) else _answer(answer, turn)

    def then(self, *answers: Any) -> None:
        """Add answers to the list."""
        self._answers.extend(answers)

    async def close(self) -> None:
        """Nothing to let go of."""
        self.closed = True

    def _next(self, turn: Turn) -> Any:
        if self._function is not None:
            return self._function
        if not self._answers:
            message = f"The script of the model is used up: there is no answer to turn {len(self.turns)}."
            raise ModelError(message, model=turn.model, retryable=False, hint="Give the script more answers.")
        return self._answers.pop(0)


def _answer(given: Any, turn: Turn) -> Answer:
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    value = msgspec.UNSET
    if turn.schema is not None:
        value = given if not isinstance(given, str) else read_json(given)
    asked = [turn.system, *(message.content for message in turn.messages)]
    usage = Usage(input_tokens=sum(map(_words, asked)), output_tokens=_words(text))
    return Answer(text=text, model=turn.model, value=value, usage=usage)


def _words(text: str) -> int:
    return len(text.split())


def read_json(text: str) -> Any:
    """The JSON value that a text is, in a fence of Markdown or without; UNSET where it is none."""
    body = text.strip()
    if body.startswith("```") and body.endswith("```"):
        body = body[3:-3].removeprefix("json").strip()
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return msgspec.UNSET
