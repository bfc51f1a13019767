"""What is left of a secret where a text was cut: its beginning before a cut, its end behind one.

A text is cut at both of its ends, and wherever `…` stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.redaction.patterns import BLOT

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST = 8
"""Characters that are left of a secret: fewer could be the beginning of anything."""

_LONGEST = 4096
_CUT = "…"


class Edges:
    """Finds pieces of spellings at the edges of texts."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._beginnings: dict[str, list[str]] = {}
        self._ends: dict[str, list[str]] = {}
        self._reach = 0
        for spelling in spellings:
            self._beginnings.setdefault(spelling[:LEAST], []).append(spelling)
            self._ends.setdefault(spelling[-LEAST:], []).append(spelling)
            self._reach = max(self._reach, min(len(spelling), _LONGEST))

    def blot(self, text: str) -> str:
        """The text with such pieces replaced."""
        return _CUT.join(map(self._blotted, text.split(_CUT)))

    def _blotted(self, part: str) -> str:
        for at in range(max(0, len(part) - self._reach), len(part) - LEAST + 1):
            if any(one.startswith(part[at:]) for one in self._beginnings.get(part[at : at + LEAST], ())):
                part = part[:at] + BLOT
                break
        for at in range(min(len(part), self._reach), LEAST - 1, -1):
            if any(one.endswith(part[:at]) for one in self._ends.get(part[at - LEAST : at], ())):
                return BLOT + part[at:]
        return part
