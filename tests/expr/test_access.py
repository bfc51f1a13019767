"""Nothing but JSON values can be reached: no attribute of a Python object, no name outside the scope."""

from __future__ import annotations

import enum
import math
from collections import UserDict, UserList
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from luthier.errors import ExpressionError
from luthier.expr import Scope, compile_value, parse
from luthier.taint import Labelled


class Secretive:
    """An object with attributes that must stay out of reach; its own code must never run."""

    secret = "s3cret"
    tags = ("a",)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"reached for {name}")

    def __getitem__(self, name: str) -> Any:
        raise AssertionError(f"reached for {name}")

    def __str__(self) -> str:
        raise AssertionError("printed")

    def __bool__(self) -> bool:
        raise AssertionError("asked for its truth")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


class Level(enum.IntEnum):
    low = 1


class Colour(enum.StrEnum):
    red = "red"


class Live(Mapping[str, Any]):
    """A mapping of its own make, as a live view of a run is."""

    def __getitem__(self, name: str) -> Any:
        return {"x": 1, "items": "own"}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("x", "items"))

    def __len__(self) -> int:
        return 2


def evaluate(source: str, **values: Any) -> Any:
    return (
        parse(source)
        .evaluate(Scope({name: Labelled(value) for name, value in values.items()}, now=0.0))
        .value
    )


NAMES = (
    "__class__",
    "__dict__",
    "__init__",
    "__globals__",
    "secret",
    "tags",
    "keys",
    "items",
    "append",
    "format",
    "real",
    "_fields",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value", [{}, [], "text", 5, 1.5, True, None, (1,), pytest.param(Secretive(), id="Secretive")], ids=repr
)
def test_attributes_of_python_objects_cannot_be_reached(value: Any, name: str) -> None:
    assert evaluate(f"v.{name}", v=value) is None
    assert evaluate(f"v['{name}']", v=value) is None
    assert evaluate("v[n]", v=value, n=name) is None
    assert evaluate(f"map([v], '{name}')", v=value) == [None]


USES = [
    "v + 1",
    "v == 1",
    "!v",
    "v ? 1 : 2",
    "v || 1",
    "v ?? 1",
    "v | string",
    "type(v)",
    "json([v])",
    "[1][v]",
    "includes([v], 1)",
    "join([v])",
    "v.includes('x')",
    "'' + [v]",
    "-v",
    "v < 1",
    "'${v}'",
    "max(v)",
]


@pytest.mark.parametrize("source", USES)
def test_an_object_that_json_does_not_know_cannot_be_worked_with(source: str) -> None:
    with pytest.raises(ExpressionError, match="A Secretive is not a JSON value"):
        evaluate(source, v=Secretive())


def test_only_names_of_the_scope_are_known() -> None:
    for name in ("os", "__builtins__", "open", "globalThis", "process", "this", "self"):
        with pytest.raises(ExpressionError, match=f"There is no '{name}' here"):
            evaluate(f"{name}.x", a=1)


def test_an_unknown_environment_tells_where_it_is_opened() -> None:
    with pytest.raises(ExpressionError, match="`expose_env`"):
        evaluate("env.HOME", a=1)


def test_mappings_and_lists_of_other_makes_are_read_by_their_items() -> None:
    for value in (Live(), MappingProxyType({"x": 1, "items": "own"}), UserDict({"x": 1, "items": "own"})):
        assert evaluate("v.x", v=value) == 1
        assert evaluate("v.items", v=value) == "own"
        assert evaluate("v.get", v=value) is None
        assert evaluate("v[0]", v=value) is None
        assert evaluate("[type(v), !v, len(v), keys(v), v == v, v == {}]", v=value) == [
            "object", False, 2, ["x", "items"], True, False,
        ]  # fmt: skip
        assert evaluate("json(v)", v=value) == '{"x":1,"items":"own"}'
    assert evaluate("[v[0], v.length, v | join('-'), type(v)]", v=(1, 2)) == [1, 2, "1-2", "array"]
    with pytest.raises(ExpressionError, match="A UserList is not a JSON value"):
        evaluate("len(v)", v=UserList([1]))


def test_numbers_and_text_of_other_makes_count_as_what_they_are() -> None:
    assert evaluate("[v + 1, v == 1, type(v)]", v=Level.low) == [2, True, "number"]
    assert evaluate("[v + '!', v | uppercase, v.length, type(v)]", v=Colour.red) == [
        "red!",
        "RED",
        3,
        "string",
    ]


def test_numbers_that_json_does_not_know_are_null() -> None:
    for number in (math.nan, math.inf, -math.inf):
        assert evaluate("v", v={"n": number})["n"] is number
        assert evaluate("v.n", v={"n": number}) is None
        assert evaluate("v[0]", v=[number]) is None
        assert evaluate("[v][0].n", v={"n": number}) is None
        assert evaluate("v.n ?? 'none'", v={"n": number}) == "none"
        assert evaluate("json(v)", v=[number, 1.0]) == "[null,1]"
        assert evaluate("v + 1", v=number) == 1
        assert evaluate("type(v)", v=number) == "null"


def test_names_that_are_no_text_cannot_be_written_as_json() -> None:
    with pytest.raises(ExpressionError, match="of type int, not text"):
        evaluate("json(v)", v={5: 1})


def test_the_parts_of_a_path_that_are_calculated_are_names_of_data_only() -> None:
    assert evaluate("v[k]", v={"null": 1, "true": 2, "1,2": 3, "1.5": 4}, k=None) == 1
    assert evaluate("v[k]", v={"null": 1, "true": 2, "1,2": 3, "1.5": 4}, k=True) == 2
    assert evaluate("v[k]", v={"null": 1, "true": 2, "1,2": 3, "1.5": 4}, k=[1, 2]) == 3
    assert evaluate("v[k]", v={"null": 1, "true": 2, "1,2": 3, "1.5": 4}, k=1.5) == 4
    assert evaluate("v[k]", v=["a", "b"], k=1.0) == "b"
    assert evaluate("v[k]", v=["a", "b"], k=10**30) is None
    with pytest.raises(ExpressionError, match="too many digits"):
        evaluate("v[k]", v={"a": 1}, k=10**5000)


def test_data_that_looks_like_an_expression_stays_data() -> None:
    scope = Scope({"d": Labelled({"t": "${s}", "${s}": 1}), "s": Labelled("LEAK")}, now=0.0)
    compiled = compile_value({"a": "${d.t}", "b": "<${d.t}>", "c": "${d}", "d": "${d['$' + '{s}']}"})
    assert compiled.evaluate(scope).value == {
        "a": "${s}",
        "b": "<${s}>",
        "c": {"t": "${s}", "${s}": 1},
        "d": 1,
    }
