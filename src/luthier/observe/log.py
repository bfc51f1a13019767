"""Events as log lines, through the standard library's logging, under `luthier`."""

from __future__ import annotations

import logging

import msgspec

from luthier import events, redaction
from luthier.text import escape

_LEVELS: dict[type, int] = {
    events.ServerFailed: logging.WARNING,
    events.ServerNoise: logging.WARNING,
    events.ToolsChanged: logging.WARNING,
    events.RunBegan: logging.INFO,
    events.RunDone: logging.INFO,
    events.StepDone: logging.INFO,
}


class LogObserver:
    """Logs events as `Name key=value …`: trouble as warning, runs and steps as info, the rest as debug."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or redaction.logger("luthier")

    def notify(self, event: events.Event) -> None:
        level = _LEVELS.get(type(event), logging.DEBUG)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", _line(event))


def _line(event: events.Event) -> str:
    facts = msgspec.structs.asdict(event)
    facts.pop("at")
    facts.pop("label", None)  # is for those who judge what a server says, not for a line of a log
    shown = " ".join(
        f"{key}={escape(str(value))!r}" for key, value in facts.items() if value not in ("", None, ())
    )
    return f"{type(event).__name__} {shown}"
