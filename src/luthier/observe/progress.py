"""Progress as plain lines: for runs that begin and end, steps that end, servers in trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier import events
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

MARKS = {"ok": "✓", "failed": "✗", "skipped": "-"}


class ProgressLines:
    """Writes a line for each event that a person wants to see, indented by how deeply the run is nested."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._depth: dict[str, int] = {}

    def notify(self, event: events.Event) -> None:
        if isinstance(event, events.RunBegan):
            self._depth[event.run] = self._depth.get(event.parent, -1) + 1
        line = progress_line(event)
        if line is not None:
            self._write("  " * self._depth.get(getattr(event, "run", ""), 0) + line)
        if isinstance(event, events.RunDone):
            self._depth.pop(event.run, None)


def progress_line(event: events.Event) -> str | None:
    """The line for one event, or None where a person need not be told."""
    match event:
        case events.RunBegan():
            return f"▸ {one_line(event.ensemble)}"
        case events.StepDone():
            reason = f"  {one_line(event.reason)}" if event.reason else ""
            return f"  {MARKS[event.status]} {one_line(event.step)} {seconds(event.duration)}{reason}"
        case events.RunDone():
            word = "suspended" if event.suspended else "failed"
            end = "done" if event.success else f"{word}: {one_line(event.reason)}"
            return f"▪ {one_line(event.ensemble)} {seconds(event.duration)} {end}"
        case events.ServerFailed(retry_in=float(wait)):
            return f"  ! {event.server}: {one_line(event.message)} (again in {wait:.1f} s)"
        case events.ToolsChanged():
            return f"  ! {event.server}: its tools changed, see: luthier tools diff {event.server}"
        case events.CallProgressed():
            total = f"/{event.total:g}" if event.total else ""
            said = f" {one_line(event.message)}" if event.message else ""
            return f"  … {one_line(event.step or str(event.uri))} {event.progress:g}{total}{said}"
        case _:
            return None


def seconds(milliseconds: float) -> str:
    """A duration for people: `0.42 s`."""
    return f"{milliseconds / 1000:.2f} s"
