"""Parse faults in plain words: what stands there, what is expected, what the language leaves out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from lark import UnexpectedCharacters, UnexpectedToken

from luthier.errors import ExpressionError
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEFT_OUT = re.compile(
    r"""
    '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"
    | (?P<quote> ['"])
    | \A\s*(?P<reference> env|secret|keyring|file)(?=:)
    | (?P<arrow> =>)
    | (?P<template> `)
    | (?P<spread> \.\.\.)
    | (?P<step> (?<![\w$])\+\+ | \+\+(?![\w$]))
    | (?P<power> \*\*)
    | (?P<assignment> (?<![=!<>])=(?!=))
    | (?P<statement> ;)
    | (?P<bits> (?<!&)&(?!&) | \^ | ~ | << | >>)
    | (?<![\w$.-])(?:
        (?P<function> function)(?=\s*[\w$]*\s*\()
        | (?P<keyword> new|return|if|let|const|var|await|async)(?=\s)
        | (?P<typeof> typeof)(?=\s)
        | (?P<belongs> in|instanceof)(?=\s)
        | (?P<word> and|or|not|is)(?=\s)
      )
    """,
    re.DOTALL | re.VERBOSE,
)
_NO_LOOPS = "Use map(list, 'path') or where(list, 'path', value), or a `code` step."
_REASONS = {
    "quote": ("This quote is not closed.", ""),
    "reference": (
        "References of luthier.yaml are not expressions.",
        "Write env.NAME, and list the name under `expose_env` in luthier.yaml.",
    ),
    "arrow": ("Arrow functions are not part of the language.", _NO_LOOPS),
    "function": ("Functions cannot be written here.", _NO_LOOPS),
    "template": ("Template literals are not part of the language.", "Quoted text may hold ${…} as well."),
    "spread": ("Spreading is not part of the language.", "Do it in a `code` or `transform` step."),
    "step": ("An expression cannot change a value.", "Write + 1."),
    "power": ("`**` is not part of the language.", "Do it in a `code` step."),
    "assignment": ("Assignment is not part of the language.", "Write == or === to compare."),
    "statement": ("Statements are not part of the language.", "Use a `code` step."),
    "bits": ("Operators on bits are not part of the language.", "Write && for and, || for or."),
    "keyword": ("Statements are not part of the language.", "Use condition ? this : that, or a `code` step."),
    "typeof": ("`typeof` is not part of the language.", "Write type(value)."),
    "belongs": (
        "`in` is not part of the language.",
        "Write includes(list, item) or includes(keys(object), name).",
    ),
    "word": (
        "Operators are not written as words.",
        "Write && for and, || for or, ! for not, === for is.",
    ),
}

_VALUES = frozenset({"NAME", "NUMBER", "STRING", "OPEN", "LIST_OPEN"})
_SHOWN = {
    "MEMBER": "a name",
    "KEY": "a name",
    "NAME": "a name",
    "CLOSE": "`)`",
    "LIST_CLOSE": "`]`",
    "OBJECT_CLOSE": "`}`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "SIGN": "an operator",
    "$END": "an operator or the end",
}
_NUMERAL = re.compile(r"\.?[0-9][\w.]*")


def explain(source: str, error: UnexpectedCharacters | UnexpectedToken) -> ExpressionError:
    """The fault with its offset in `source`."""
    for found in _LEFT_OUT.finditer(source):
        if found.lastgroup:
            message, hint = _REASONS[found.lastgroup]
            return ExpressionError(message, offset=found.start(found.lastgroup), hint=hint)
    at = cast("int", error.pos_in_stream)
    expected: Iterable[str]
    if isinstance(error, UnexpectedCharacters):
        standing, expected = source[at], error.allowed or ()
    else:
        standing, expected = str(error.token), error.accepts or error.expected
        if error.token.type == "$END":
            message = f"The expression ends where {_wanted(expected)} is expected."
            return ExpressionError(message, offset=len(source.rstrip()))
    if numeral := _NUMERAL.match(source, at):
        standing = numeral.group()
    message = f"Unexpected `{one_line(standing, 40)}`; {_wanted(expected)} is expected here."
    return ExpressionError(message, offset=at)


def _wanted(expected: Iterable[str]) -> str:
    names = set(expected)
    if names >= _VALUES:
        return "a value"
    if "$END" in names:
        names.discard("SIGN")  # it is named with the end, where the parser may no longer expect it
    *most, last = dict.fromkeys(text for name, text in _SHOWN.items() if name in names)
    return f"{', '.join(most)} or {last}" if most else last
