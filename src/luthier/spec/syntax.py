"""Says in plain words what a YAML parser found wrong, and what usually helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from luthier.errors import Fault
from luthier.text import escape

if TYPE_CHECKING:
    from ruamel.yaml.error import YAMLError

    from luthier.spec.document import Text

_QUOTE = "put the text into quotes"
_QUOTE_EXPRESSION = 'put the expression into quotes: "${…}"'
_SPACES = "use spaces"
_INDENT = "line it up with its neighbours"
_UNCLOSED = "a quote is never closed"
_NO_KEY = "this is neither a `key: value` nor a list item"
_TOLD_AT_THEIR_START = (_UNCLOSED, _NO_KEY)

# What ruamel says → what we say, what helps. The first pattern that is found in its problem wins.
_RULES = [
    (r"mapping values are not allowed", "a `: ` cannot stand here", _QUOTE),
    (r"found character '\\t'", "a tab cannot stand here", _SPACES),
    (r"found character '(.+)' that cannot", r"a text cannot begin with \1", _QUOTE),
    (r"unexpected (end of stream|document separator)", _UNCLOSED, "close it"),
    (r"could not find expected ':'", _NO_KEY, _INDENT),
    (r"expected <block end>, but found", "this does not fit what stands above it", f"{_INDENT}, or {_QUOTE}"),
    (r"expected ',' or '([\]}])'", r"a `,` or `\1` is missing", f"{_QUOTE} where it holds braces or commas"),
    (r"(block sequence|sequence) entries", "a list item cannot begin here", "put it on a line of its own"),
    (
        r"found unknown escape character '?(.+?)'?$",
        r"there is no escape \\\1",
        r"write \\ or use single quotes",
    ),
    (r"did not find expected <document start>", "this does not belong to the document", _INDENT),
]


def explain(error: YAMLError, file: str, text: Text) -> Fault:
    """The fault of a text that is not YAML. The line itself is not shown: it may hold a secret."""
    context_mark = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or context_mark
    problem = str(getattr(error, "problem", "") or error)
    message, suggestion = f"this is not YAML: {escape(problem)}", _QUOTE
    for pattern, plain, help_ in _RULES:
        if found := re.search(pattern, problem):
            message, suggestion = escape(found.expand(plain)), help_
            break
    if message in _TOLD_AT_THEIR_START and context_mark:
        mark = context_mark
    line, column = text.at(mark.index if mark else 0)
    written = text.line(line)
    if suggestion != _SPACES and ("${" in written or "{{" in written):
        suggestion = _QUOTE_EXPRESSION
    return Fault(message, file, line, column, suggestion=suggestion)
