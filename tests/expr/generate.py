"""Strategies: trees of expressions as the parser makes them, and values as JSON has them."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from luthier.expr.functions import FILTERS, FUNCTIONS, METHODS, NAMESPACES
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
from luthier.expr.numbers import canonical

LAW = settings(deadline=None, max_examples=120)
"""How long a law is tried. No deadline: the first example builds the grammar."""

NAMES = ("a", "b", "c", "get-pr", "2fa", "true-ish", "$x", "ünïcode", "item_1")
"""The roots that generated expressions name."""

KEYS = ("x", "y", "output", "length", "0", "in-ner", "v@1.2", "with space", "it's", "", "${x}", "failed")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "a", "a,b", "x", "${a}", "{{a}}", "5", " 12 ", "\\", "'", '"', "\n", "%Y", "a.b[0]", "[1]"]
)
NUMBERS = (st.integers(0, 2**70) | st.floats(0, allow_nan=False, allow_infinity=False)).map(
    lambda number: number if isinstance(number, int) else canonical(number)
)
LITERALS = st.builds(Literal, st.none() | st.booleans() | NUMBERS | TEXT)
ROOTS = st.builds(Name, st.sampled_from(NAMES))

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXT
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)

_BINARY = ("+", "-", "*", "/", "%", "==", "!=", "===", "!==", "<", "<=", ">", ">=")


def _path(base: Node, keys: list[str | int | Node]) -> Node:
    """A path as the parser makes it: of one piece, with what is fixed as a plain key."""
    fixed = [key.value if isinstance(key, Literal) and type(key.value) in (str, int) else key for key in keys]
    if isinstance(base, Path):
        return Path(base.base, (*base.keys, *fixed))  # type: ignore[arg-type]
    return Path(base, tuple(fixed))  # type: ignore[arg-type]


def _applied(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def arguments(least: int, most: int | None) -> st.SearchStrategy[tuple[Node, ...]]:
        return st.lists(inner, min_size=least, max_size=least + 2 if most is None else most).map(tuple)

    calls = [(name, function) for name, function in FUNCTIONS.items()]
    calls += [
        (f"{space}.{name}", function)
        for space, names in NAMESPACES.items()
        for name, function in names.items()
    ]
    return st.one_of(
        st.sampled_from(calls).flatmap(
            lambda call: st.builds(Call, st.just(call[0]), arguments(call[1].least, call[1].most))
        ),
        st.sampled_from(sorted(FILTERS.items())).flatmap(
            lambda item: st.builds(
                Filter, inner, st.just(item[0]), arguments(item[1].least - 1, (item[1].most or 1) - 1)
            )
        ),
        st.sampled_from(sorted(METHODS.items())).flatmap(
            lambda item: st.builds(
                Method, inner, st.just(item[0]), arguments(item[1].least - 1, (item[1].most or 1) - 1)
            )
        ),
    )


def _larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    keys = st.sampled_from(KEYS) | st.integers(0, 3) | inner
    return st.one_of(
        st.builds(_path, inner, st.lists(keys, min_size=1, max_size=3)),
        st.builds(_path, ROOTS, st.lists(keys, min_size=1, max_size=3)),
        st.builds(Unary, st.sampled_from("!-+"), inner),
        st.builds(Binary, st.sampled_from(_BINARY), inner, inner),
        st.builds(Choice, st.sampled_from(("||", "&&", "??")), inner, inner),
        st.builds(Ternary, inner, inner, inner),
        st.builds(ListOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(ObjectOf, st.lists(st.tuples(st.sampled_from(KEYS) | TEXT, inner), max_size=3).map(tuple)),
        _applied(inner),
    )


TREES: st.SearchStrategy[Node] = st.recursive(LITERALS | ROOTS, _larger, max_leaves=12)


ROOMY = st.builds(Path, st.builds(Name, st.sampled_from("abc")), st.sampled_from([("x",), ("y",)]))
SMALL = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x", "0"])


def _blending(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.builds(ListOf, st.tuples(inner, inner))
    ternary = st.builds(Ternary, inner, inner, inner)
    choice = st.builds(Choice, st.sampled_from(("||", "&&", "??")), inner, inner)
    return st.one_of(
        ternary,
        ternary,
        ternary,
        choice,
        choice,
        st.builds(Binary, st.sampled_from(("+", "==", "<")), inner, inner),
        st.builds(Unary, st.just("!"), inner),
        st.builds(lambda base, key: Path(base, (key,)), two, ROOMY),
        st.builds(lambda base, key: _path(base, [key]), two, st.integers(0, 1)),
        two,
        st.builds(lambda left, right: ObjectOf((("x", left), ("y", right))), inner, inner),
        st.builds(lambda target, other: Filter(target, "default", (other,)), inner, inner),
        st.builds(lambda items: Call("join", (items,)), two),
        st.builds(lambda items, sought: Call("includes", (items, sought)), two, inner),
    )


BLENDS: st.SearchStrategy[Node] = st.recursive(ROOMY, _blending, max_leaves=6)
"""Trees over `a.x … c.y` that blend small values in every way, so that labels have work to do."""
