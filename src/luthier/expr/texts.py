"""Functions on text. A character is a Unicode code point."""

from __future__ import annotations

from typing import Any

from luthier.expr.budget import ITEM, READ, STUDY, Frame
from luthier.expr.function import short_text
from luthier.expr.numbers import SPACE, number_text
from luthier.expr.values import bare, is_number, strict_equal


def trim(frame: Frame, text: str) -> str:
    frame.spend(len(text))
    return text.strip(SPACE)


def upper(frame: Frame, text: str) -> str:
    frame.spend(len(text))
    return text.upper()


def lower(frame: Frame, text: str) -> str:
    frame.spend(len(text))
    return text.lower()


def capitalize(frame: Frame, text: str) -> str:
    """The first character in upper case, the rest as it is."""
    frame.spend(len(text))
    return text[:1].upper() + text[1:]


def split(frame: Frame, text: str, separator: Any = None) -> list[str]:
    """The parts between separators (default: a space); with an empty separator the characters."""
    by = short_text(separator, "The separator", " ")
    frame.spend(len(text))
    if not by:
        frame.spend(ITEM * len(text))
        return list(text)
    frame.spend(ITEM * (text.count(by) + 1))
    return text.split(by)


def split_method(frame: Frame, text: str, separator: Any = None) -> list[str]:
    """As in JavaScript: without a separator the text is one part."""
    return [text] if separator is None else split(frame, text, separator)


def includes(frame: Frame, value: Any, sought: Any) -> bool:
    """Whether text holds that text, or a list that item (as `===`)."""
    if isinstance(value, list):
        frame.spend(STUDY * len(value))
        return any(strict_equal(bare(item), sought, frame) for item in value)
    part = _part(sought)
    if not isinstance(value, str) or part is None:
        return False
    frame.spend(len(value) >> READ)
    return part in value


def starts_with(frame: Frame, value: Any, sought: Any) -> bool:
    part = _part(sought)
    if not isinstance(value, str) or part is None:
        return False
    frame.spend(len(part) >> READ)
    return value.startswith(part)


def ends_with(frame: Frame, value: Any, sought: Any) -> bool:
    part = _part(sought)
    if not isinstance(value, str) or part is None:
        return False
    frame.spend(len(part) >> READ)
    return value.endswith(part)


def _part(sought: Any) -> str | None:
    if isinstance(sought, str):
        return sought
    return number_text(sought) if is_number(sought) else None
