"""The spellings in which a known secret is looked for: as it is, and as others encode it on its way."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPED_GAP = re.compile(r"\\[nrt]")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_UNTOUCHED = ("", "/", "!'()*", "!'()*~;/?:@&=+$,#")  # what different quoters leave as it is
_BITS = 6  # in a character of base64
_STANDARD, _URL_SAFE = "+/", "-_"


def spellings(text: str) -> frozenset[str]:
    """All spellings of the text, squeezed."""
    return frozenset(squeezed(one, escapes=escapes) for one in _spelled(text) for escapes in (False, True))


def squeezed(text: str, *, escapes: bool) -> str:
    """The text without what may stand in a secret that was wrapped: blanks, and escaped line breaks too."""
    text = "".join(text.split())
    return _ESCAPED_GAP.sub("", text) if escapes else text


def places(text: str, *, escapes: bool) -> list[int]:
    """Where each character of the squeezed text stands in the text."""
    solid = [place for place, character in enumerate(text) if not character.isspace()]
    if not escapes:
        return solid
    kept: list[int] = []
    at = 0
    for gap in _ESCAPED_GAP.finditer("".join(text.split())):
        kept += solid[at : gap.start()]
        at = gap.end()
    return kept + solid[at:]


def _spelled(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    yield text
    yield from _json(text)
    yield from _quoted(data)
    yield from _base64(data)
    yield data.hex()
    yield data.hex().upper()


def _json(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        plain = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield plain
        yield plain.replace("/", "\\/")
    yield repr(text)[1:-1]


def _quoted(data: bytes) -> Iterator[str]:
    for quoted in (*(quote(data, safe=safe) for safe in _UNTOUCHED), quote_plus(data)):
        yield quoted
        yield _ESCAPE.sub(lambda match: match.group().lower(), quoted)


def _base64(data: bytes) -> Iterator[str]:
    """The characters that the text alone decides, for each of the three places where it can begin."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        core = encoded[-(-before * 8 // _BITS) : (before + len(data)) * 8 // _BITS]
        yield core
        yield core.translate(str.maketrans(_STANDARD, _URL_SAFE))
