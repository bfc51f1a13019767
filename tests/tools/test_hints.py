"""Type hints are made readable for pydantic without changing what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, Optional, Required, TypedDict, Union

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from luthier.tools.hints import readable


class Point(TypedDict):
    """A place."""

    x: Annotated[int, Field(ge=0)]
    y: NotRequired[int]


class Shape(TypedDict, total=False):
    name: Required[str]
    points: list[Point]


class Round(Shape):
    radius: float


class Node(TypedDict):
    kids: list[Node]


# The older spellings are what is tested here.
OPTIONAL_INT, OPTIONAL_POINT = Optional[int], Optional[Point]  # noqa: UP045
INT_OR_TEXT, POINT_OR_INT = Union[int, str], Union[Point, int]  # noqa: UP007

PLAIN = [
    *(int, None, Any, list, "Forward"),
    *(list[int], dict[str, int], tuple[int, ...], Literal["a", "b"], Annotated[int, Field(ge=1)]),
    *(OPTIONAL_INT, INT_OR_TEXT, int | None),
]
DEEP = [
    *(Point, list[Point], dict[str, Point], tuple[Point, ...], Annotated[Point, Field(description="d")]),
    *(OPTIONAL_POINT, POINT_OR_INT, Point | None, list[dict[str, Point | None]]),
]


@pytest.mark.parametrize("hint", PLAIN, ids=repr)
def test_a_hint_without_a_typed_dict_is_the_same(hint: Any) -> None:
    assert readable(hint) is hint


@pytest.mark.parametrize("hint", DEEP, ids=repr)
def test_a_typed_dict_is_accepted_at_any_depth(hint: Any) -> None:
    schema = TypeAdapter(readable(hint)).json_schema()
    point = schema.get("$defs", {}).get("Point", schema)
    assert point["properties"]["x"] == {"minimum": 0, "title": "X", "type": "integer"}
    assert point["required"] == ["x"]


def test_required_and_not_required_members_are_told_apart_in_both_kinds_and_in_heirs() -> None:
    shape = TypeAdapter(readable(Round))
    assert shape.json_schema()["required"] == ["name", "radius"]
    assert set(shape.json_schema()["properties"]) == {"name", "points", "radius"}
    circle = {"name": "a", "radius": 1.5, "points": [{"x": 1}]}
    assert shape.validate_python(circle) == circle
    with pytest.raises(ValidationError, match=r"points\.0\.x"):
        shape.validate_python(circle | {"points": [{"x": -1}]})


def test_a_typed_dict_may_refer_to_itself() -> None:
    node = TypeAdapter(readable(Node))
    assert node.validate_python({"kids": [{"kids": []}]}) == {"kids": [{"kids": []}]}
    with pytest.raises(ValidationError):
        node.validate_python({"kids": [{}]})


def test_the_original_is_not_changed() -> None:
    before = dict(Shape.__annotations__)
    readable(list[Shape])
    assert Shape.__annotations__ == before
