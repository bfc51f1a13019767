"""Whoever asked for a call from outside, while it is at work: to be told of it, and to be asked back.

A `Line` is the way to one of them, made by whoever runs calls for clients; `Lines` knows it by the root of
what the client began, so that calls and steps of any depth find it. A `Caller` is what tools are given.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from luthier.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Ability = Literal["elicitation", "sampling", "roots"]
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Reaction(msgspec.Struct, frozen=True):
    """What a person answered: `accept` with the fields of the form, `decline`, or `cancel`."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = {}

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the client's model said: its text, and the whole answer as it came."""

    text: str
    model: str = ""
    answer: dict[str, Any] = {}


class Line(Protocol):
    """The way to one client. Messages go nowhere where it does not want them."""

    def can(self, what: Ability) -> bool:
        """Whether the client declared that it can be asked this."""
        ...

    async def log(self, level: Level, text: str) -> None:
        """Send it a line of the log."""
        ...

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """Tell it how far the work is."""
        ...

    async def ask(self, what: Ability, params: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Its answer, as the protocol has it. Raises CallerError where it cannot be asked or has failed."""
        ...


class NoLine:
    """Nobody is there: what is told goes nowhere, and nothing can be asked."""

    def can(self, what: Ability) -> bool:  # noqa: ARG002
        return False

    async def log(self, level: Level, text: str) -> None:
        pass

    async def progress(self, done: float, total: float | None, message: str) -> None:
        pass

    async def ask(self, what: Ability, params: Mapping[str, Any], key: str) -> dict[str, Any]:  # noqa: ARG002
        raise CallerError("Nobody is there who could be asked.", needs=what)


NO_LINE = NoLine()


class Lines:
    """The lines that are open, by the root of what each client began."""

    def __init__(self) -> None:
        self._open: dict[str, Line] = {}

    def of(self, root: str) -> Line:
        """The line to whoever began that; one to nobody where there is none."""
        return self._open.get(root, NO_LINE)

    @contextmanager
    def during(self, root: str, line: Line) -> Iterator[None]:
        """Keep the line open while the body lasts."""
        self._open[root] = line
        try:
            yield
        finally:
            del self._open[root]


class Caller:
    """The client behind a call. A tool's parameter of this type is filled in, and is not in its schema.

    What is asked needs a client that can: `can` tells, and asking another one raises CallerError, which ends
    the call with the error that the protocol has for it.
    """

    def __init__(self, line: Line = NO_LINE) -> None:
        self._line = line

    def can(self, what: Ability) -> bool:
        """Whether the client can be asked this."""
        return self._line.can(what)

    async def log(self, text: str, level: Level = "info") -> None:
        """Send a line to the client's log, if it wants such lines."""
        await self._line.log(level, text)

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell the client how far the work is, if it asked to be told."""
        await self._line.progress(done, total, message)

    async def elicit(
        self,
        message: str,
        fields: Mapping[str, Mapping[str, Any]],
        *,
        required: Sequence[str] | None = None,
        key: str = "",
    ) -> Reaction:
        """Ask the person at the client to fill in a form: JSON Schemas of plain values by the field's name.

        All fields must be filled in unless `required` names those that must. `key` names the question.
        """
        schema = {
            "type": "object",
            "properties": {name: dict(field) for name, field in fields.items()},
            "required": list(fields if required is None else required),
        }
        answer = await self._line.ask("elicitation", {"message": message, "requestedSchema": schema}, key)
        return Reaction(answer["action"], answer.get("content") or {})

    async def sample(
        self, prompt: str | Sequence[Mapping[str, Any]], max_tokens: int, *, key: str = "", **more: Any
    ) -> Said:
        """Ask the client's model: a text, or messages. `more` goes along as it is (`systemPrompt`, …)."""
        messages = [user_text(prompt)] if isinstance(prompt, str) else list(prompt)
        params = {"messages": messages, "maxTokens": max_tokens, **more}
        answer = await self._line.ask("sampling", params, key)
        content = answer.get("content") or []
        blocks = content if isinstance(content, list) else [content]
        text = "".join(block.get("text", "") for block in blocks)
        return Said(text=text, model=answer.get("model", ""), answer=answer)

    async def roots(self, *, key: str = "") -> list[dict[str, Any]]:
        """The folders that the client works in: `uri`, and perhaps `name`, of each."""
        answer = await self._line.ask("roots", {}, key)
        return list(answer.get("roots") or [])


def user_text(text: str) -> dict[str, Any]:
    """A message of the user that is one text."""
    return {"role": "user", "content": {"type": "text", "text": text}}


NOBODY = Caller()
