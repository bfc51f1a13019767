"""Parse faults in plain words: what stands there, what is expected, and what the language leaves out by design."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from luthier.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Iterable

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_LEFT_OUT = re.compile(
    _QUOTED
    + r"""
    | (?P<arrow> =>) | (?P<template> `) | (?P<spread> \.\.\.) | (?P<step> (?<![\w$]) \+\+ | \+\+ (?![\w$]))
    | (?P<power> \*\*) | (?P<assignment> (?<![=!<>]) = (?!=)) | (?P<statement> ;)
    | (?P<bits> (?<!&)&(?!&) | \^ | ~ | << | >>)
    | (?<![\w$.-]) (?: (?P<function> function)(?=\s*[\w$]*\s*\() | (?P<keyword> new|return|if|let|const|var|await|async)(?=\s)
                     | (?P<typeof> typeof)(?=\s) | (?P<belongs> in|instanceof)(?=\s) | (?P<word> and|or|not|is)(?=\s) )
    """,
    re.DOTALL | re.VERBOSE,
)
_NO_LOOPS = "Use map(list, 'path') or where(list, 'path', value), or a `code` step."
_REASONS = {
    "arrow": ("Arrow functions are not part of the language.", _NO_LOOPS),
    "function": ("Functions cannot be written here.", _NO_LOOPS),
    "template": ("Template literals are not part of the language.", "Use quotes: '…${name}…' may hold expressions too."),
    "spread": ("Spreading is not part of the language.", "Do it in a `code` or `transform` step."),
    "step": ("An expression cannot change a value.", "Write + 1."),
    "power": ("`**` is not part of the language.", "Do it in a `code` step."),
    "assignment": ("Assignment is not part of the language.", "Write == or === to compare."),
    "statement": ("One expression only: statements are not part of the language.", "Use a `code` step."),
    "bits": ("Operators on bits are not part of the language.", "Write && for and, || for or."),
    "keyword": ("Statements are not part of the language.", "Use condition ? this : that, or a `code` step."),
    "typeof": ("`typeof` is not part of the language.", "Write type(value)."),
    "belongs": ("`in` is not part of the language.", "Write includes(list, item) or includes(keys(object), name)."),
    "word": ("Operators are not written as words.", "Write && for and, || for or, ! for not, === for is."),
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
    "PLUS": "an operator",
    "SIGN": "an operator",
    "$END": "the end",
}


def explain(source: str, error: UnexpectedInput) -> ExpressionError:
    """The fault with its offset in `source`."""
    for found in _LEFT_OUT.finditer(source):
        if found.lastgroup:
            message, hint = _REASONS[found.lastgroup]
            return ExpressionError(message, offset=found.start(), hint=hint)
    if isinstance(error, UnexpectedCharacters):
        return _stray(source, error.pos_in_stream, error.allowed)
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return ExpressionError(
                f"The expression ends where {_wanted(error.accepts or error.expected)} is expected.",
                offset=len(source.rstrip()),
            )
        if token.type == "MEMBER" or (token.type == "KEY"):
            return _stray(source, token.start_pos or 0, error.accepts or error.expected)
        return _unexpected(token, error)
    raise error


def _unexpected(token: Token, error: UnexpectedToken) -> ExpressionError:
    return ExpressionError(
        f"Unexpected `{token}`; {_wanted(error.accepts or error.expected)} is expected here.", offset=token.start_pos or 0
    )


def _stray(source: str, at: int, expected: Iterable[str] | None) -> ExpressionError:
    rest = source[at:]
    if rest[:1] in "'\"":
        return ExpressionError("This quote is not closed.", offset=at)
    if re.match(r"\$\{|\{\{", rest):
        return ExpressionError("An opening inside an expression.", offset=at)
    if number := re.match(r"[0-9.][\w.]*", rest):
        return ExpressionError(f"`{number.group()}` is not a number.", offset=at)
    return ExpressionError(f"Unexpected `{rest[:1]}`; {_wanted(expected or ())} is expected here.", offset=at)


def _wanted(expected: Iterable[str]) -> str:
    names = set(expected)
    if names >= _VALUES:
        return "a value"
    shown = dict.fromkeys(text for name, text in _SHOWN.items() if name in names)
    *most, last = shown or ("something else",)
    return f"{', '.join(most)} or {last}" if most else last
