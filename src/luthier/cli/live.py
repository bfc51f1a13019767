"""Progress on a terminal: a line for each step, updated in place while it runs; plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Self

from luthier import events
from luthier.observe.progress import MARKS, ProgressLines, seconds
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.console import Console, ConsoleOptions, RenderResult

    from luthier.events import Observer

_STYLES = {"ok": "green", "failed": "bold red", "skipped": "dim"}


class Shown(NamedTuple):
    """Who shows progress, and what keeps it still while something else is said."""

    observers: tuple[Observer, ...]
    paused: Callable[[], AbstractContextManager[object]] = nullcontext


@contextmanager
def progress(*, quiet: bool) -> Iterator[Shown]:
    """The observers that show progress on stderr while the body runs."""
    if quiet:
        yield Shown(())
    elif not sys.stderr.isatty():
        yield Shown((ProgressLines(lambda line: print(line, file=sys.stderr, flush=True)),))  # noqa: T201
    else:
        from rich.console import Console
        from rich.live import Live

        board = Board()
        live = Live(board, console=Console(stderr=True), refresh_per_second=12, transient=False)

        @contextmanager
        def paused() -> Iterator[None]:
            live.stop()
            try:
                yield
            finally:
                live.start()

        with live:
            yield Shown((board,), paused)


class Board:
    """The state of every step seen so far, as rich draws it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}
        self._depth: dict[str, int] = {}

    def notify(self, event: events.Event) -> None:
        match event:
            case events.RunBegan():
                self._depth[event.run] = self._depth.get(event.parent, -1) + 1
            case events.StepBegan():
                self._rows.setdefault((event.run, event.step), _Row(event.step)).begin(event.attempt)
            case events.StepDone():
                row = self._rows.setdefault((event.run, event.step), _Row(event.step))
                row.end(event.status, event.duration, event.reason)
            case events.CallProgressed():
                if (row_ := self._rows.get((event.run, event.step))) is not None:
                    row_.note = event.message or f"{event.progress:g}"
            case _:
                pass

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        now = time.monotonic()
        for (run, _), row in self._rows.items():
            indent = "  " * self._depth.get(run, 0)
            mark = Spinner("dots") if row.status == "" else Text(MARKS[row.status], _STYLES[row.status])
            spent = row.duration if row.status else (now - row.started) * 1000
            grid.add_row(
                mark, Text(indent + one_line(row.step)), Text(seconds(spent), "dim"), Text(row.shown, "dim")
            )
        yield grid


class _Row:
    def __init__(self, step: str) -> None:
        self.step = step
        self.started = time.monotonic()
        self.status = ""
        self.duration = 0.0
        self.note = ""

    def begin(self, attempt: int) -> Self:
        self.note = f"attempt {attempt}" if attempt > 1 else ""
        return self

    def end(self, status: str, duration: float, reason: str) -> None:
        self.status, self.duration, self.note = status, duration, reason

    @property
    def shown(self) -> str:
        return one_line(self.note, limit=120)
