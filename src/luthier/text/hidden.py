"""Characters in a text that show nothing, steer what shows it, or push it out of sight: found, and taken out.

What every rule does is listed in docs/definitions.md. Newlines and tabs stay, and so does every letter.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 10_000
"""Characters of one text."""

BLANKS = 40
"""Blanks in a row; more are one."""

_NEWLINES = 3  # in a row; more are two
_MARKS = 4  # combining marks in a row

_TERMINAL = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, moves of the cursor
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC: titles, links, the clipboard
    "|\x1b[PX^_][^\x1b]*\x1b\\\\"  # strings for devices
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Printable for Python and yet invisible: joiners, fillers, variation selectors, blanks of other scripts.
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d159\U000e0000-\U000e0fff]"
)
_LINES = re.compile("[\u2028\u2029]")
_SPACE = "[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_BLANK_RUN = re.compile(f"{_SPACE}{{{BLANKS + 1},}}")
_NEWLINE_RUN = re.compile(f"\n(?:{_SPACE}*\n){{{_NEWLINES},}}")
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_MARK_RUN = re.compile(f"({_MARK}{{{_MARKS}}}){_MARK}+")
_ODD = re.compile(f"[^\n\t -~]| {{{BLANKS + 1}}}|\t|\n{_SPACE}*\n{_SPACE}*\n")  # may need a closer look
_NEVER_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def shown_text(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as it may be shown, and the rules by which it was changed."""
    if len(text) <= LONGEST and not _ODD.search(text):
        return text, ()
    rules: list[str] = []
    text = text.replace("\r\n", "\n")
    for rule, step in _STEPS:
        changed = step(text)
        if changed != text:
            text = changed
            rules.append(rule)
    return text, tuple(dict.fromkeys(rules))


def hidden(text: str) -> str:
    """The characters of a text that show nothing or steer what shows it; newlines and tabs are none."""
    if text.isascii() and text.isprintable():
        return ""
    return "".join(_hidden(text))


def _hidden(text: str) -> Iterator[str]:
    for character in text:
        if character not in "\n\t" and (
            _INVISIBLE.match(character) or unicodedata.category(character) in _NEVER_SHOWN
        ):
            yield character


def _without_hidden(text: str) -> str:
    text = _INVISIBLE.sub("", _LINES.sub("\n", text))
    if text.translate(_PLAIN).isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _NEVER_SHOWN)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


_PLAIN = {ord(space): " " for space in "\n\t\xa0\u1680\u2000\u2001\u2002\u2003\u2009\u200a\u202f\u205f\u3000"}
_STEPS = (
    ("terminal", lambda text: _TERMINAL.sub("", text)),
    ("control", lambda text: _CONTROL.sub("", text)),
    ("hidden", _without_hidden),
    ("marks", lambda text: _MARK_RUN.sub(r"\1", text)),
    ("padding", lambda text: _NEWLINE_RUN.sub("\n\n", _BLANK_RUN.sub(" ", text))),
    ("long", _shortened),
)
