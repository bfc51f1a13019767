"""Patterns that the linear engine cannot run are left out, and leaving out only ever accepts more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.tools.schema import Schema
from luthier.tools.schema_patterns import patterns_in, without

LOOK = "^(?=.*x)"  # no linear engine has lookahead
ALPHABET = ["", "a", "b", "ab", "ba"]
PATTERNS = ["^a", "b$"]

values = st.recursive(
    st.sampled_from([*ALPHABET, 1, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(ALPHABET), inner, max_size=3),
    max_leaves=6,
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(ALPHABET), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "object", "array", ["string", "null"]]),
            "pattern": st.sampled_from(PATTERNS),
            "minLength": st.integers(0, 2),
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
            "additionalProperties": st.just(value=False) | inner,
            "unevaluatedProperties": st.just(value=False),
            "propertyNames": inner,
            "required": st.lists(st.sampled_from(ALPHABET), max_size=1),
            "items": inner,
            "prefixItems": some,
            "contains": inner,
            "minContains": st.integers(0, 2),
            "maxContains": st.integers(0, 2),
            "unevaluatedItems": st.just(value=False),
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": named,
            "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
        },
    )


leaves = st.sampled_from(
    [True, False, {"pattern": "^a"}, {"pattern": "b$"}, {"type": "string"}, {"minLength": 1}]
)
definitions = st.fixed_dictionaries(
    {"one": leaves, "two": _objects(leaves).map(lambda it: it | {"$ref": "#/$defs/one"})}
)
schemas = st.builds(
    lambda schema, defined: schema | {"$defs": defined},
    _objects(st.recursive(leaves, _objects, max_leaves=3)),
    definitions,
)


@given(schemas, values, st.sets(st.sampled_from(PATTERNS), min_size=1))
def test_whatever_fits_a_schema_fits_it_without_some_of_its_patterns(
    schema: dict[str, Any], value: Any, dropped: set[str]
) -> None:
    loosened = without(schema, dropped)
    assert not dropped & set(patterns_in(loosened))
    if Schema(schema).ok(value):
        assert Schema(loosened).ok(value)


@given(schemas)
def test_without_nothing_to_leave_out_a_schema_is_the_same(schema: dict[str, Any]) -> None:
    assert without(schema, set()) is schema


@given(schemas, st.sets(st.sampled_from(PATTERNS)))
def test_the_schema_itself_is_never_changed(schema: dict[str, Any], dropped: set[str]) -> None:
    before = repr(schema)
    without(schema, dropped)
    assert repr(schema) == before


class TestWhatIsLeftOut:
    @pytest.mark.parametrize(
        "pattern", [LOOK, "(?!a)b", "(?<=a)b", "(a)\\1", "[", "(?<=a|bc)d", "(?P=x)", "\\Z"]
    )
    def test_the_pattern_and_nothing_else(self, pattern: str) -> None:
        schema = Schema({"type": "string", "pattern": pattern, "maxLength": 3})
        assert schema.ok("abc")
        assert not schema.ok(1)
        assert not schema.ok("abcd")
        (note,) = schema.notes
        assert "is not checked" in note
        assert pattern.replace("\\", "\\\\") in note

    def test_usable_patterns_beside_it_stay(self) -> None:
        schema = Schema({"properties": {"a": {"pattern": LOOK}, "b": {"pattern": "^x"}}})
        assert schema.ok({"a": "y", "b": "x"})
        assert not schema.ok({"b": "y"})

    def test_properties_that_the_pattern_may_have_named_are_not_unknown(self) -> None:
        schema = Schema(
            {
                "properties": {"a": {"type": "string"}},
                "patternProperties": {LOOK: {}},
                "additionalProperties": False,
            }
        )
        assert schema.ok({"a": "y", "x": 1, "z": 2})
        assert not schema.ok({"a": 1})

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"not": {"pattern": LOOK}}, "a"),
            ({"not": {"allOf": [{"properties": {"k": {"pattern": LOOK}}}]}}, {"k": "a"}),
            ({"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": LOOK}}}, "a"),
            ({"oneOf": [{"pattern": LOOK}, {"pattern": "^a"}]}, "a"),
            ({"if": {"pattern": LOOK}, "then": {"maxLength": 0}}, "a"),
            ({"contains": {"pattern": LOOK}, "minContains": 0, "maxContains": 0}, ["a"]),
            ({"not": {"patternProperties": {LOOK: {"type": "integer"}}}}, {"x": "a"}),
            (
                {
                    "if": {"properties": {"a": {"pattern": LOOK}}},
                    "then": {"properties": {"b": {}}},
                    "unevaluatedProperties": False,
                },
                {"a": "x", "b": 1},
            ),
        ],
    )
    def test_nothing_valid_is_refused_where_the_pattern_stood_in_a_denial(
        self, schema: Any, value: Any
    ) -> None:
        assert Schema(schema).ok(value)

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"not": {"type": "integer"}}, 1),
            ({"not": {"enum": [[1], {"pattern": 1}]}}, {"pattern": 1}),
            ({"not": {"pattern": "^a"}}, "a"),
            ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1),
            ({"if": {"type": "string"}, "then": {"maxLength": 0}}, "a"),
            ({"contains": {"type": "string"}, "maxContains": 0, "minContains": 0}, ["a"]),
            ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"b": 1}),
        ],
    )
    def test_what_does_not_depend_on_the_pattern_stays_as_strict(self, schema: Any, value: Any) -> None:
        with_pattern = {"allOf": [schema], "properties": {"x": {"pattern": LOOK}}}
        assert Schema(with_pattern).notes
        assert not Schema(with_pattern).ok(value)

    def test_one_of_two_forms_stays_a_choice_of_forms(self) -> None:
        schema = Schema({"oneOf": [{"type": "string", "pattern": LOOK}, {"type": "null"}]})
        assert schema.ok("a")
        assert schema.ok(None)
        assert not schema.ok(1)

    def test_a_property_that_is_called_pattern_is_no_pattern(self) -> None:
        properties = {
            "pattern": {"type": "string"},
            "patternProperties": {"type": "string"},
            "x": {"pattern": LOOK},
        }
        schema = Schema({"properties": {"not": {"properties": properties}}})
        assert not schema.ok({"not": {"pattern": 1}})
        assert not schema.ok({"not": {"patternProperties": 1}})
        assert schema.ok({"not": {"x": "a"}})

    def test_examples_and_constants_are_no_schemas(self) -> None:
        assert (
            patterns_in(
                {"const": {"pattern": "("}, "examples": [{"pattern": "("}], "default": {"pattern": "("}}
            )
            == []
        )

    def test_every_place_of_a_pattern_is_found(self) -> None:
        assert sorted(
            patterns_in(
                {
                    "pattern": "a",
                    "patternProperties": {"b": {"pattern": "c"}},
                    "items": [{"pattern": "d"}, True],
                    "additionalProperties": {"not": {"pattern": "e"}},
                    "$defs": {"x": {"anyOf": [{"pattern": "f"}]}},
                    "dependencies": {"k": ["a"], "l": {"pattern": "g"}},
                }
            )
        ) == list("abcdefg")
