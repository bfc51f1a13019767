"""The table of rows about HTTP: which report, which mode of the faulty server, what must come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.bench import House
from tests.faults.http.bench import HttpBench

BOTH = ("legacy", "modern")
LEGACY_ONLY = ("legacy",)
MODERN_ONLY = ("modern",)
AUTO = ("auto",)


@dataclass(frozen=True)
class Row:
    """`number` is the report's; `act` does it and judges; `within` bounds it, in seconds."""

    number: str
    mode: str
    arguments: tuple[str, ...]
    act: Callable[[HttpBench], Awaitable[None]]
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

OnBench = Callable[[HttpBench], Awaitable[None]]
InHouse = Callable[[House], Awaitable[None]]


@dataclass(frozen=True)
class row:  # noqa: N801  (it reads as a word above a function)
    """A row for a function that takes a house of one server in that mode.

    Afterwards the connection must be well and, but for `restarts`, the one that it began with.
    """

    number: str
    mode: str
    arguments: tuple[str, ...] = ()
    eras: tuple[str, ...] = BOTH
    within: float = 8.0
    restarts: bool = False
    transport: str = "http"
    fields: dict[str, Any] = field(default_factory=dict)

    def __call__(self, judge: InHouse) -> InHouse:
        async def act(bench: HttpBench) -> None:
            bench.transport = self.transport
            async with bench.house(bench.entry(**self.fields)) as house:
                await judge(house)
                assert (await house.call("echo", well=True)).content == {"well": True}
                if not self.restarts:
                    assert len(house.journal.heard("initialize")) <= 1, "the session was begun anew"

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
