"""From source to tree."""

from __future__ import annotations

import re
from typing import cast

from lark import UnexpectedCharacters, UnexpectedToken

from luthier.errors import ExpressionError
from luthier.expr.build import Builder
from luthier.expr.faults import explain
from luthier.expr.grammar import parser
from luthier.expr.nodes import Literal, Node
from luthier.expr.scan import scan_close

LONGEST = 10_000
"""Characters that one expression may have."""

_OPENING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\$\{|\{\{""", re.DOTALL)


def parse_tree(source: str) -> Node:
    """The tree of an expression; blank is null. Raises ExpressionError with `source` and `offset`."""
    try:
        return _parse(source, 0)
    except ExpressionError as error:
        error.source = source
        raise


def _parse(source: str, offset: int) -> Node:
    if len(source) > LONGEST:
        raise ExpressionError(f"This expression is longer than {LONGEST} characters.", offset=offset)
    if not source.strip():
        return Literal(None, at=offset)
    try:
        # Blanks before it, so that every offset counts from the beginning of the whole.
        return cast("Node", parser(_BUILDER).parse(" " * offset + _flat(source, offset)))
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise explain(" " * offset + source, error) from None


def _flat(source: str, offset: int) -> str:
    """The source with inner delimiters as brackets, all in its place: `${a} && b` as ` (a) && b`."""
    if "${" not in source and "{{" not in source:
        return source
    characters = list(source)
    position = 0
    while found := _OPENING.search(source, position):
        position = found.end()
        if found.group()[0] in "'\"":
            continue
        end = scan_close(source, found.end())
        if end < 0:
            raise ExpressionError(f"`{found.group()}` is not closed.", offset=offset + found.start())
        characters[found.start() : found.end()] = " ("
        characters[end] = ")"
        if found.group() == "{{":
            characters[end + 1] = " "
    return "".join(characters)


_BUILDER = Builder(_parse)
