"""What servers report while they are at work, for whoever serves it on: of calls, and of their tools."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from luthier.events import CallProgressed, ToolsAnnounced, ToolsChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from luthier.events import Event

    Heard = Callable[[CallProgressed], None]

_OF_TOOLS = (ToolsAnnounced, ToolsChanged)


class Following:
    """An observer that knows who wants to hear of which call; `changes` counts what was said of tools."""

    def __init__(self) -> None:
        self._calls: dict[str, Heard] = {}
        self.changes = 0

    def notify(self, event: Event) -> None:
        if isinstance(event, CallProgressed):
            if (heard := self._calls.get(event.call_id)) is not None:
                heard(event)
        elif isinstance(event, _OF_TOOLS):
            self.changes += 1

    @contextmanager
    def during(self, call_id: str, heard: Heard | None) -> Iterator[None]:
        """Pass on what is reported of the call while the body lasts."""
        if heard is None:
            yield
            return
        self._calls[call_id] = heard
        try:
            yield
        finally:
            del self._calls[call_id]
