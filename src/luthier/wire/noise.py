"""What was odd on the wire, told to whoever wants to know, but never as a flood."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("luthier.wire")

_TOLD = 50  # in full, for each connection; after that one in each _THEN
_THEN = 1000


class Noise:
    """Counts oddities and tells the first of them; a server that logs to stdout must not fill our log."""

    def __init__(self, listener: Callable[[str], None] | None) -> None:
        self._listener = listener
        self.count = 0

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
