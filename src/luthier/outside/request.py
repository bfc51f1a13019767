"""The request that the arguments of `builtin://http` ask for: address, headers and body. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from luthier.errors import StepError
from luthier.tools.headers import FRAMING, name_fault, value_fault
from luthier.web import UrlRules, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Methods that do the same twice as once, as HTTP defines them."""

_OURS = FRAMING | {"accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"}
_FORM = "application/x-www-form-urlencoded"


class Request(msgspec.Struct, frozen=True):
    """As it goes out."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


def request_of(arguments: Mapping[str, Any], rules: UrlRules) -> Request:
    """Read arguments that fit the tool's schema. Raises StepError for what may not or cannot be sent."""
    url = str(arguments["url"])
    fault = rules.fault(url)
    if fault is not None:
        hint = fault.hint.replace("this server", "this step")
        raise StepError("arguments", f"{shown(url)!r} is not asked: it {fault.why}.", hint=hint)
    if query := urlencode(list(_pairs(arguments.get("params") or {}, "params"))):
        url = f"{url}{'&' if '?' in url else '?'}{query}"
    headers = _headers(arguments.get("headers") or {})
    kind, body = _body(arguments)
    if kind and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    return Request(str(arguments.get("method") or "GET"), url, headers, body)


def _headers(given: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in given.items():
        if value is None:
            continue
        text = _text(value).strip()
        fault = name_fault(name, _OURS) or value_fault(name, text)
        if fault is None and name.lower() in seen:
            fault = f"the header {name} is given twice"
        if fault is not None:
            raise StepError("arguments", f"The request cannot be sent: {fault}.")
        seen.add(name.lower())
        headers[name] = text
    return headers


def _body(arguments: Mapping[str, Any]) -> tuple[str, bytes]:
    """The media type and the body: text as it is, a form, anything else as JSON."""
    form, body = arguments.get("form"), arguments.get("body")
    if form is not None and body is not None:
        raise StepError("arguments", "A request has either a body or a form.")
    if form is not None:
        return _FORM, urlencode(list(_pairs(form, "form"))).encode()
    if body is None:
        return "", b""
    if isinstance(body, str):
        return "text/plain; charset=utf-8", body.encode(errors="replace")
    try:
        return "application/json", msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise StepError("arguments", "The body holds half a character, which JSON in UTF-8 cannot.") from None


def _pairs(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Names and values as they are encoded: a list is its name several times, null is nothing."""
    for name, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (dict, list)):
                message = f"`{where}.{name}` must be text, a number, true, false or a list of those."
                raise StepError("arguments", message)
            if item is not None:
                yield _sound(name), _sound(_text(item))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _sound(text: str) -> str:
    """Without halves of characters, which no encoding has."""
    return text if text.isascii() else text.encode(errors="replace").decode()
