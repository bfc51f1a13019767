"""The `config` of an `api` (or `http`) step: the request, its time, and which answers are data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from luthier.expr import compile_value
from luthier.expr.scan import UnclosedError, segments
from luthier.spec.ensemble import ApiConfig
from luthier.spec.expressions import noted
from luthier.spec.words import as_suggestion, quoted
from luthier.web import form_fault

if TYPE_CHECKING:
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Found, Reader

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
SPELLED = {**{method: method for method in METHODS}, **{method.lower(): method for method in METHODS}}
MAPPINGS = ("params", "headers", "form")
_LITERAL = re.compile(r"https?://[^/?#]+(?=[/?])", re.IGNORECASE)
LARGEST = 10 * 1024 * 1024
LOWEST, HIGHEST = 400, 599

_RETRY = "write `retry` beside `config`"
_HINTS = {
    "query": "write params",
    "data": "write body",
    "json": "write body: what is no text is sent as JSON",
    "retry": _RETRY,
    "retries": f"{_RETRY}: {{maxAttempts: …}}",
    "cookies": "no cookies are kept; write a header",
    "auth": "write a header: Authorization: Bearer ${env.NAME}",
}


def read_api(reader: Reader, draft: Draft) -> ApiConfig | None:
    """Read it all, noting expressions in the draft; None, and faults, where it is no request."""
    before = len(reader.sink.faults)
    written: dict[str, Any] = {}
    url = reader.take("url", required=True)
    if url is not None:
        _check_url(reader, url)
        written["url"] = url.value
        noted(reader.sink, draft, "url", url)
    method = reader.choice(SPELLED, "method") or "GET"
    for name in (*MAPPINGS, "body"):
        found = reader.take(name)
        if found is None:
            continue
        written[name] = found.value
        noted(reader.sink, draft, name, found)
        if name in MAPPINGS and not isinstance(found.value, dict) and not _is_expression(found.value):
            reader.sink.wrong("a mapping", *found)
    _check_body(reader, method)
    if limit := reader.whole("max_bytes", low=1, high=LARGEST):
        written["max_bytes"] = limit
    config: dict[str, Any] = {
        "timeout": reader.seconds("timeout"),
        "allow_status": _statuses(reader),
        "allow_private": reader.flag("allow_private"),
        "idempotent": reader.flag("idempotent") if reader.take("idempotent") else None,
        "method": method,
    }
    reader.done(_HINTS)
    if len(reader.sink.faults) > before:
        return None
    request = compile_value({**written, "method": method})
    return ApiConfig(request=request, literal=_literal(written["url"]), **config)


def _check_url(reader: Reader, url: Found) -> None:
    if not isinstance(url.value, str):
        reader.sink.wrong("text", *url)
        return
    if not url.value.strip():
        reader.sink.add("`url` is empty", url.path)
    begun = _literal(url.value)
    if begun and (fault := form_fault(begun)):
        hint = "put it into a header" if "password" in fault.why else as_suggestion(fault.hint)
        reader.sink.add(f"`url` {fault.why}", url.path, suggestion=hint)


def _check_body(reader: Reader, method: str) -> None:
    for name in ("body", "form"):
        if reader.raw(name) and method in ("GET", "HEAD"):
            message = f"{quoted(name)} is not sent with {method}"
            reader.sink.add(message, reader.at(name), key=True, suggestion="write method: POST, or params")
    if reader.raw("body") and reader.raw("form"):
        reader.sink.add("a request has either `body` or `form`", reader.at("form"), key=True)


def _statuses(reader: Reader) -> tuple[int, ...] | None:
    found = reader.take("allow_status")
    if found is None:
        return ()
    if found.value == "any":
        return None
    if not isinstance(found.value, list):
        reader.sink.wrong("a list of statuses, or any", *found)
        return ()
    for index, status in enumerate(found.value):
        if not isinstance(status, int) or isinstance(status, bool) or not LOWEST <= status <= HIGHEST:
            message = f"a status that is no success is a number from {LOWEST} to {HIGHEST}"
            reader.sink.add(message, (*found.path, index))
    return tuple(found.value)


def _literal(url: str) -> str:
    """The address up to its path, where no expression stands before that."""
    pieces = _pieces(url)
    if not pieces:
        return ""
    if len(pieces) == 1:
        return pieces[0]
    begun = _LITERAL.match(pieces[0])
    return f"{begun[0]}/" if begun else ""


def _pieces(url: str) -> list[str]:
    """The plain text before the first expression, and one more piece for whatever follows."""
    try:
        cut = segments(url)
    except UnclosedError:
        return []
    if not cut or cut[0].is_expression:
        return []
    return [cut[0].content] if len(cut) == 1 else [cut[0].content, ""]


def _is_expression(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not _pieces(value)
