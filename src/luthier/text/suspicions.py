"""What in a definition a person should look at before approving it. Told, never acted on.

A definition of which nothing is told is not safe because of it: no list of phrases finds every lie.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from luthier.text.cleaner import MAX_DEPTH, Finding
from luthier.text.escaping import one_line
from luthier.text.names import disguised

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORM = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_RESERVED = frozenset(
    {"save_to_memory", "http", "storage", "model", "luthier"}
)  # names of Luthier's own tools
_COMMENT = re.compile(r"<!--")
_IMAGE = re.compile(r"!\[[^\]]{0,500}\]\s{0,5}[(\[]|<\s{0,5}(?:img|iframe|script|svg|link)\b", re.IGNORECASE)
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|other|all|system)\b"
    r"|\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|telling|mention|inform|reveal|notify)"
    r"|<\s{0,5}/?\s{0,5}(?:important|system|instructions?|secret|hidden|admin)\s{0,5}>"
    r"|\bsystem prompt\b|\b(?:you must|always) (?:first|also) (?:call|read|send|use)\b"
    r"|\.ssh/|id_rsa|\bapi[_ ]keys?\b.{0,40}\b(?:send|include|pass)\b",
    re.IGNORECASE | re.DOTALL,
)
_FEW = 3  # letters in another style, as in ™; more are a text in disguise
_LONG_NAME = 64  # of a parameter; what is longer says something


def suspicions(definition: dict[str, Any]) -> tuple[Finding, ...]:
    """What the rules that change nothing find."""
    return tuple(_in_name(str(definition.get("name", "")))) + tuple(_in_value(definition, "", 0))


def _in_name(name: str) -> Iterator[Finding]:
    if not _FORM.fullmatch(name):
        yield Finding("name-form", "/name", "it has characters that MCP does not provide for")
    if name.casefold() in _RESERVED:
        yield Finding("reserved-name", "/name", "a tool of Luthier's own has this name")


def _in_value(value: Any, path: str, depth: int) -> Iterator[Finding]:
    if isinstance(value, str):
        yield from _in_text(value, path)
    elif depth > MAX_DEPTH:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if len(key) > _LONG_NAME:
                yield Finding("long-name", place, one_line(key, 80))
            yield from _in_text(key, place)
            yield from _in_value(item, place, depth + 1)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _in_value(item, f"{path}/{at}", depth + 1)


def _in_text(text: str, path: str) -> Iterator[Finding]:
    if _COMMENT.search(text):
        yield Finding("comment", path, "it has an HTML comment, which many programs do not show")
    if found := _IMAGE.search(text):
        yield Finding("image", path, f"what shows it may fetch something: {one_line(found.group(), 60)}")
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    if found := _ORDERS.search(plain):
        yield Finding("orders", path, f"it speaks to the model: {one_line(found.group(), 80)}")
    if word := disguised(text):
        yield Finding("mixed-script", path, f"{one_line(word, 40)!r} mixes letters that look alike")
    if not text.isascii() and len(styled := _styled(text)) >= _FEW:
        yield Finding("styled", path, f"letters in another style: {one_line(''.join(styled), 40)}")


def _styled(text: str) -> list[str]:
    """Letters that are Latin ones in another form: full width, mathematical, circled."""
    return [
        letter
        for letter in text
        if not letter.isascii()
        and (plain := unicodedata.normalize("NFKC", letter)).isascii()
        and plain.isalpha()
        and len(plain) == 1
    ]
