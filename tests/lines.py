"""A line to a client that answers from a script and remembers what it was told and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from luthier.caller import Ability, Level


class ScriptedLine:
    """Can what it has an answer for; `wait` is awaited before each answer."""

    def __init__(
        self, *, wait: Callable[[], Awaitable[None]] | None = None, **answers: dict[str, Any]
    ) -> None:
        self._answers = answers
        self._wait = wait
        self.asked: list[tuple[Ability, dict[str, Any], str]] = []
        self.told: list[tuple[Any, ...]] = []

    def can(self, what: Ability) -> bool:
        return what in self._answers

    async def log(self, level: Level, text: str) -> None:
        self.told.append((level, text))

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.told.append((done, total, message))

    async def ask(self, what: Ability, params: Mapping[str, Any], key: str) -> dict[str, Any]:
        if what not in self._answers:
            raise CallerError("It cannot be asked.", needs=what)
        self.asked.append((what, dict(params), key))
        if self._wait is not None:
            await self._wait()
        return self._answers[what]
