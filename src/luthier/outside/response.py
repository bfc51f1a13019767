"""What a response is to a workflow: `{status, headers, body, encoding, ok}`. Pure."""

from __future__ import annotations

import base64
import codecs
import re
from email.message import Message
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.wire.codec import REFUSED

if TYPE_CHECKING:
    from collections.abc import Mapping

_HIDDEN = frozenset({"set-cookie", "set-cookie2"})
_CHARSETS = re.compile(r"ascii|utf-(?:8|16|32)|iso8859|cp125|koi8|shift_jis|euc_|gb|big5")
"""Those that the web uses: Python has others, some of which take quadratic time."""

_SUCCESS = 2


def response_of(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Cookies are left out: nothing here keeps any, and a run's record is no place for a session."""
    told: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        if key not in _HIDDEN:
            text = _sound(value)
            told[key] = f"{told[key]}, {text}" if key in told else text
    value, encoding = decoded(told.get("content-type", ""), body)
    return {
        "status": status,
        "ok": status // 100 == _SUCCESS,
        "headers": told,
        "body": value,
        "encoding": encoding,
    }


def decoded(content_type: str, body: bytes) -> tuple[Any, str]:
    """A body as a value, and how it was read: `json`, `text` or `base64`; null where there is none.

    What says that it is JSON and is not is text; what says nothing and is no text is base64.
    """
    kind, charset = _type(content_type)
    if not body:
        return None, "json" if _is_json(kind) else "text"
    if _is_json(kind):
        try:
            return msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf")), "json"
        except REFUSED:
            return body.decode(errors="replace"), "text"
    if b"\0" in body and not charset:
        return base64.b64encode(body).decode(), "base64"
    try:
        return _sound(body.decode(charset or "utf-8")), "text"
    except UnicodeError:
        if charset or kind.startswith("text/"):
            return body.decode(errors="replace"), "text"
        return base64.b64encode(body).decode(), "base64"


def excerpt(found: dict[str, Any], limit: int = 300) -> str:
    """The beginning of what a response says, for the message of a step that fails by it."""
    body = found.get("body")
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode() if body is not None else ""
    return text[:limit]


def _sound(text: str) -> str:
    """Without halves of characters, which some encodings let through."""
    return text.encode(errors="replace").decode()


def _type(content_type: str) -> tuple[str, str]:
    message = Message()
    message["Content-Type"] = content_type.replace("\r", "").replace("\n", "")
    try:
        charset = codecs.lookup(message.get_content_charset() or "").name
    except (LookupError, UnicodeError, ValueError):
        charset = ""
    return message.get_content_type() if content_type else "", charset if _CHARSETS.match(charset) else ""


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")
