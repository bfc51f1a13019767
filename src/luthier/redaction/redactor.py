"""Blots out secrets in text that is shown or kept: first the known values, then what looks like one.

Known is every text that a `Secret` was made of in this process. It is found raw, URL-quoted, in base64 (at
each of its three offsets, both alphabets), in hex, escaped as in JSON, and wrapped or split by blanks and
line breaks; and in a text that was cut, by what is left of it. A value of four to seven characters is found
only as it is and where it stands alone, since it could be a part of any word; a shorter one and the words of
a switch are not looked for at all.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from luthier.redaction.edges import Edges
from luthier.redaction.patterns import BLOT, blot_guesses
from luthier.redaction.spellings import places, spellings, squeezed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST, SHORT = 4, 8
"""Values below the first are not known; values below the second are found only where they stand alone."""

MOST = 1000
"""Values that are known at a time; beyond it the oldest is forgotten."""

WORDS_OF_A_SWITCH = frozenset({"true", "false", "none", "null", "auto", "development", "production"})


_SCHEME = re.compile(r"[A-Za-z][A-Za-z-]{2,15}\s+(?P<credential>\S+)")

_GRAM, _STRIDE = 4, SHORT - 4 + 1
"""Wherever a spelling stands, a piece of this length at a multiple of the stride lies wholly within it."""

_Pieces = dict[str, list[tuple[int, str]]]


class Redactor:
    """Texts that are known to be secret, and what replaces them. Shared by threads."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._lock = threading.Lock()
        self._made: tuple[_Pieces, re.Pattern[str] | None, Edges] | None = None

    def add(self, text: str) -> None:
        """From now on this text is blotted out, and what in it stands behind a scheme: `Bearer …`."""
        text = text.strip()
        if behind := _SCHEME.fullmatch(text):
            self.add(behind["credential"])
        if len(text) < SHORTEST or text.lower() in WORDS_OF_A_SWITCH:
            return
        with self._lock:
            if text not in self._known:
                self._known[text] = None
                self._made = None
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """Know nothing any more: for tests, of which many with their own secrets share one process."""
        with self._lock:
            self._known.clear()
            self._made = None

    def redact(self, text: str) -> str:
        """The text with every known secret, and whatever looks like one, replaced."""
        return blot_guesses(self.blot_known(text))

    def blot_known(self, text: str) -> str:
        """The text with the known secrets replaced."""
        pieces, short, edges = self._made or self._make()
        if short is not None:
            text = short.sub(BLOT, text)
        if pieces:
            text = _blotted(text, pieces, escapes=False)
            if "\\" in text:
                text = _blotted(text, pieces, escapes=True)
            text = edges.blot(text)
        return text

    def _make(self) -> tuple[_Pieces, re.Pattern[str] | None, Edges]:
        with self._lock:
            long = [text for text in self._known if len(squeezed(text, escapes=True)) >= SHORT]
            short = sorted(self._known.keys() - set(long), key=len, reverse=True)
            alone = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, short))})(?!\w)") if short else None
            spelled = dict.fromkeys(one for text in long for one in spellings(text))
            self._made = _pieces(spelled), alone, Edges(spelled)
            return self._made


known = Redactor()
"""The redactor of this process."""


def redact(text: str) -> str:
    """The text as it may be shown or kept."""
    return known.redact(text)


def redact_value(value: Any) -> Any:
    """A JSON value with every text in it redacted, names of members too."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {redact_value(key): redact_value(item) for key, item in value.items()}
        case list() | tuple():
            return [redact_value(item) for item in value]
        case _:
            return value


def _pieces(spelled: Iterable[str]) -> _Pieces:
    """Every spelling under each of the pieces by which it is found, with where in it the piece stands."""
    pieces: _Pieces = {}
    for spelling in spelled:
        for start in range(_STRIDE):
            pieces.setdefault(spelling[start : start + _GRAM], []).append((start, spelling))
    return pieces


def _found(text: str, pieces: _Pieces) -> Iterator[tuple[int, int]]:
    for at in range(0, len(text) - _GRAM + 1, _STRIDE):
        for start, spelling in pieces.get(text[at : at + _GRAM], ()):
            if at >= start and text.startswith(spelling, at - start):
                yield at - start, at - start + len(spelling)


def _blotted(text: str, pieces: _Pieces, *, escapes: bool) -> str:
    """The text with every spelling that is found in it, squeezed so or so, replaced."""
    found = list(_found(squeezed(text, escapes=escapes), pieces))
    if not found:
        return text
    place = places(text, escapes=escapes)
    parts: list[str] = []
    shown = 0
    for first, last in sorted((place[start], place[end - 1] + 1) for start, end in found):
        if first >= shown:
            parts += (text[shown:first], BLOT)
        shown = max(shown, last)
    return "".join((*parts, text[shown:]))
