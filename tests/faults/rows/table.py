"""The table of rows: which report, which mode of the faulty server, what must come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.bench import Bench, House

BOTH = ("legacy", "modern")
AUTO = ("auto",)


@dataclass(frozen=True)
class Row:
    """`number` is the report's; `act` does it and judges; `within` bounds it, in seconds."""

    number: str
    mode: str
    arguments: tuple[str, ...]
    act: Callable[[Bench], Awaitable[None]]
    eras: tuple[str, ...]
    within: float
    judge: Callable[..., object]

    @property
    def name(self) -> str:
        return "-".join([self.number, self.mode, *self.arguments])

    @property
    def says(self) -> str:
        """The sentence that is shown."""
        return self.judge.__name__


TABLE: list[Row] = []

OnBench = Callable[[Bench], Awaitable[None]]
InHouse = Callable[[House], Awaitable[None]]


@dataclass(frozen=True)
class row:  # noqa: N801  (it reads as a word above a function)
    """A row for a function that takes a house of one server in that mode, which must be well afterwards."""

    number: str
    mode: str
    arguments: tuple[str, ...] = ()
    eras: tuple[str, ...] = BOTH
    within: float = 8.0
    survives: bool = True
    fields: dict[str, Any] = field(default_factory=dict)

    def __call__(self, judge: InHouse) -> InHouse:
        async def act(bench: Bench) -> None:
            async with bench.house(bench.entry(**self.fields)) as house:
                await judge(house)
                if self.survives:
                    before = house.journal.starts()
                    assert await house.pid() == before[-1], "the session is not the one that was tested"
                    assert (await house.call("echo", well=True)).content == {"well": True}
                    assert len(before) == 1, "the server was started more than once"

        TABLE.append(Row(self.number, self.mode, self.arguments, act, self.eras, self.within, judge))
        return judge


@dataclass(frozen=True)
class own:  # noqa: N801  (likewise)
    """A row for a function that sets up its own house or runtime on the bench."""

    number: str
    mode: str
    arguments: tuple[str, ...] = ()
    eras: tuple[str, ...] = AUTO
    within: float = 8.0

    def __call__(self, judge: OnBench) -> OnBench:
        TABLE.append(Row(self.number, self.mode, self.arguments, judge, self.eras, self.within, judge))
        return judge
