"""Progress lines and log lines: what is told, and that nothing from a server steers a terminal."""

from __future__ import annotations

import logging

import pytest

from luthier import events
from luthier.observe import LogObserver, ProgressLines, progress_line
from luthier.uri import ToolUri

URI = ToolUri.mcp("git", "git_log")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (events.RunBegan(at=0, run="r", ensemble="digest", steps=("a",)), "▸ digest"),
        (events.StepDone(at=0, run="r", step="log", status="ok", duration=420), "  ✓ log 0.42 s"),
        (
            events.StepDone(at=0, run="r", step="log", status="failed", duration=7, reason="it\x1b[1m broke"),
            "  ✗ log 0.01 s  it\\x1b[1m broke",
        ),
        (events.StepDone(at=0, run="r", step="log", status="skipped", duration=0), "  - log 0.00 s"),
        (
            events.RunDone(at=0, run="r", ensemble="digest", success=True, duration=1500),
            "▪ digest 1.50 s done",
        ),
        (
            events.RunDone(at=0, run="r", ensemble="digest", success=False, duration=0, reason="no"),
            "▪ digest 0.00 s failed: no",
        ),
        (
            events.ServerFailed(at=0, server="git", message="gone", retry_in=1.5),
            "  ! git: gone (again in 1.5 s)",
        ),
        (events.ServerFailed(at=0, server="git", message="gone"), None),
        (
            events.CallProgressed(
                at=0, call_id="1", uri=URI, progress=3, total=10, message="half\nway", step="log"
            ),
            "  … log 3/10 half way",
        ),
        (events.CallProgressed(at=0, call_id="1", uri=URI, progress=3), "  … mcp://git/git_log 3"),
        (events.ServerReady(at=0, server="git", protocol="2026-07-28", seconds=0.1), None),
    ],
)
def test_an_event_has_its_line_or_none(event: events.Event, line: str | None) -> None:
    assert progress_line(event) == line


def test_a_nested_run_is_indented_below_the_one_it_is_in() -> None:
    lines: list[str] = []
    seen = ProgressLines(lines.append)
    seen.notify(events.RunBegan(at=0, run="outer", ensemble="outer", steps=()))
    seen.notify(events.RunBegan(at=0, run="inner", ensemble="inner", steps=(), parent="outer"))
    seen.notify(events.StepDone(at=0, run="inner", step="a", status="ok", duration=0))
    seen.notify(events.RunDone(at=0, run="inner", ensemble="inner", success=True, duration=0))
    seen.notify(events.StepDone(at=0, run="outer", step="b", status="ok", duration=0))
    assert lines == ["▸ outer", "  ▸ inner", "    ✓ a 0.00 s", "  ▪ inner 0.00 s done", "  ✓ b 0.00 s"]


def test_log_lines_name_the_event_and_leave_out_what_is_empty(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="luthier")
    LogObserver().notify(events.ServerNoise(at=1, server="git", message="v1 \x1b[0m"))
    LogObserver().notify(events.CallEnded(at=1, call_id="1", uri=URI, outcome="ok", duration=1.0))
    noise, ended = caplog.records
    assert noise.levelno == logging.WARNING
    assert noise.getMessage() == "ServerNoise server='git' message='v1 \\\\x1b[0m'"
    assert ended.levelno == logging.DEBUG
    assert "run=" not in ended.getMessage()


def test_what_the_log_does_not_want_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="luthier")
    LogObserver().notify(events.RunDone(at=1, run="r", ensemble="e", success=True, duration=1.0))
    assert caplog.records == []
