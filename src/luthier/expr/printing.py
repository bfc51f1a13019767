"""The canonical spelling of a tree: it parses to an equal tree, with brackets only where they are needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from luthier.expr.nodes import (
    Binary,
    Call,
    Choice,
    Filter,
    ListOf,
    Literal,
    Method,
    Name,
    Node,
    ObjectOf,
    Path,
    Ternary,
    Unary,
)
from luthier.expr.quoted import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_TERNARY, _PREFIX, _FILTER, _MEMBER, _WHOLE = 0, 8, 9, 10, 11
_LEVELS = {
    "??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "===": 4, "!==": 4,
    "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
_MEMBER_NAME = re.compile(r"[\w$]+(?:-+[\w$]+)*(?:@(?:v?[0-9]+(?:\.[0-9]+)*|[^\W\d]\w*(?:-+\w+)*))?")
_NUMBERED = re.compile(r"@v?[0-9]+(?:\.[0-9]+)*\Z")  # behind a dot, a number would be a part of it


def print_tree(node: Node) -> str:
    """The source of a tree."""
    return _printed(node, _TERNARY)


def _printed(node: Node, level: int) -> str:
    """The node, in brackets if it binds looser than what stands around it."""
    text, own = _PRINTERS[type(node)](node)
    return text if own >= level else f"({text})"


def _literal(node: Literal) -> tuple[str, int]:
    match node.value:
        case None:
            return "null", _WHOLE
        case bool():
            return ("true" if node.value else "false"), _WHOLE
        case str():
            return quote(node.value), _WHOLE
        case number:
            # No member of a bare number: its dot would read as a decimal point.
            return repr(number), _PREFIX if number < 0 else _FILTER


def _path(node: Path) -> tuple[str, int]:
    text = _printed(node.base, _MEMBER)
    for key in node.keys:
        text += _key(key, text)
    return text, _MEMBER


def _key(key: str | int | Node, before: str) -> str:
    if isinstance(key, Node):
        return f"[{print_tree(key)}]"
    if isinstance(key, int):
        return f"[{key}]"
    found = _MEMBER_NAME.match(key)  # as the parser reads on, not as far as it could fit
    goes_on = key[:1].isdigit() and _NUMBERED.search(before)
    return f".{key}" if found and found.end() == len(key) and not goes_on else f"[{quote(key)}]"


def _unary(node: Unary) -> tuple[str, int]:
    operand = _printed(node.operand, _PREFIX)
    apart = " " if node.operator != "!" and operand.startswith(node.operator) else ""
    return f"{node.operator}{apart}{operand}", _PREFIX


def _binary(node: Binary | Choice) -> tuple[str, int]:
    level = _LEVELS[node.operator]
    return f"{_printed(node.left, level)} {node.operator} {_printed(node.right, level + 1)}", level


def _ternary(node: Ternary) -> tuple[str, int]:
    condition = _printed(node.condition, _TERNARY + 1)
    return f"{condition} ? {print_tree(node.then)} : {print_tree(node.otherwise)}", _TERNARY


def _list(node: ListOf) -> tuple[str, int]:
    return f"[{_arguments(node.items)}]", _WHOLE


def _object(node: ObjectOf) -> tuple[str, int]:
    return "{" + ", ".join(f"{quote(key)}: {print_tree(value)}" for key, value in node.entries) + "}", _WHOLE


def _call(node: Call) -> tuple[str, int]:
    return f"{node.name}({_arguments(node.arguments)})", _WHOLE


def _method(node: Method) -> tuple[str, int]:
    return f"{_printed(node.target, _MEMBER)}.{node.name}({_arguments(node.arguments)})", _MEMBER


def _filter(node: Filter) -> tuple[str, int]:
    given = ", ".join(
        f"({argument.name})" if isinstance(argument, Name) else print_tree(argument)
        for argument in node.arguments
    )
    brackets = f"({given})" if given else ""
    return f"{_printed(node.target, _FILTER)} | {node.name}{brackets}", _FILTER


def _arguments(nodes: tuple[Node, ...]) -> str:
    return ", ".join(map(print_tree, nodes))


_PRINTERS: dict[type[Node], Callable[[Any], tuple[str, int]]] = {
    Literal: _literal,
    Name: lambda node: (node.name, _WHOLE),
    Path: _path,
    Unary: _unary,
    Binary: _binary,
    Choice: _binary,
    Ternary: _ternary,
    ListOf: _list,
    ObjectOf: _object,
    Call: _call,
    Method: _method,
    Filter: _filter,
}
