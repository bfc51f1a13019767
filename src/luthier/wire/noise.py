"""What was odd on the wire, told to whoever wants to know, but never as a flood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.redaction import logger
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logger("luthier.wire")

_TOLD = 50  # in full, for each connection; after that one in each _THEN
_THEN = 1000
_SHOWN = 200  # characters of something unreadable


class Noise:
    """Counts oddities and tells the first of them; a server that logs to stdout must not fill our log."""

    def __init__(self, listener: Callable[[str], None] | None) -> None:
        self._listener = listener
        self.count = 0
        self.lines = 0  # that were no message
        self._first = ""

    def passed_over(self, text: bytes, reason: str) -> None:
        """One line or more of what the server sent is no message."""
        shown = one_line(text[: 4 * _SHOWN].decode(errors="replace"), _SHOWN)
        self.lines += text.count(b"\n") + 1
        self._first = self._first or shown
        self.tell(f"something was passed over because {reason}: {shown}")

    @property
    def printed(self) -> str:
        """What came in place of messages, as a sentence; empty where nothing did."""
        if not self.lines:
            return ""
        lines = "a line that is" if self.lines == 1 else f"{self.lines:,} lines that are"
        return f"It printed {lines} no JSON-RPC{'; the first' if self.lines > 1 else ''}: {self._first}"

    def tell(self, text: str) -> None:
        self.count += 1
        if self.count > _TOLD:
            if self.count % _THEN:
                return
            text = f"{text} (oddity number {self.count:,}; most are no longer told)"
        if self._listener is None:
            return
        try:
            self._listener(text)
        except Exception:  # noqa: BLE001  (what arrives after it must still be read)
            _log.exception("a listener failed on: %s", text)
