"""Arguments are repaired where the schema leaves no doubt, and never changed where they fit already."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import SchemaError
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Labelled
from luthier.tools.arguments import prepare, prepare_labelled
from luthier.tools.schema import Schema

OLD = "http://json-schema.org/draft-07/schema#"


def schema_of(member: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": member}, **more}


class TestNulls:
    """Field report 69: strict servers refuse `null` for an optional argument that is not nullable."""

    @pytest.mark.parametrize(
        "member",
        [
            {"type": "string"},
            {"type": ["integer", "string"]},
            {"enum": ["x", 1]},
            {"const": 1},
            {"const": True},
            {"enum": [[], {}, False]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"oneOf": [{"type": "string"}, {"enum": [1]}]},
            {"allOf": [{"type": ["string", "null"]}, {"type": "string"}]},
            {"type": ["string", "null"], "enum": ["x"]},
            {"$ref": "#/$defs/text"},
            {"$ref": "#/$defs/nullable", "type": "string"},
            {"anyOf": [{"$ref": "#/$defs/text"}, False]},
            {"type": "string", "default": None},
            {"type": "string", "nullable": True},
            False,
        ],
    )
    def test_of_an_optional_property_that_is_not_nullable_is_dropped(self, member: Any) -> None:
        schema = schema_of(
            member, **{"$defs": {"text": {"type": "string"}, "nullable": {"type": ["string", "null"]}}}
        )
        assert prepare(schema, {"a": None, "b": 1}) == {"b": 1}

    @pytest.mark.parametrize(
        "member",
        [
            {},
            True,
            {"type": ["string", "null"]},
            {"type": "null"},
            {"enum": ["x", None]},
            {"const": None},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"oneOf": [{"type": "string"}, {}]},
            {"allOf": [{"type": ["string", "null"]}]},
            {"$ref": "#/$defs/nullable"},
            {"$ref": "http://elsewhere.test/x"},
            {"$ref": "#/nowhere"},
            {"$dynamicRef": "#text"},
            {"not": {"type": "string"}},
            {"description": "anything"},
            {"x-unknown": "string"},
        ],
    )
    def test_of_what_may_be_null_or_is_not_understood_is_kept(self, member: Any) -> None:
        schema = schema_of(member, **{"$defs": {"nullable": {"type": ["string", "null"]}}})
        arguments = {"a": None}
        assert prepare(schema, arguments) is arguments

    def test_of_a_required_property_is_kept_for_the_schema_to_refuse(self) -> None:
        assert prepare(schema_of({"type": "string"}, required=["a"]), {"a": None}) == {"a": None}
        assert prepare({"allOf": [schema_of({"type": "string"}), {"required": ["a"]}]}, {"a": None}) == {
            "a": None
        }

    def test_of_a_property_that_the_schema_does_not_name_is_kept(self) -> None:
        assert prepare(schema_of({"type": "string"}), {"b": None}) == {"b": None}
        assert prepare(schema_of({"type": "string"}, additionalProperties=False), {"b": None}) == {"b": None}

    def test_of_a_property_judged_by_additional_properties_goes_by_those(self) -> None:
        assert prepare({"additionalProperties": {"type": "string"}}, {"b": None, "c": "x"}) == {"c": "x"}
        named_by_pattern = {"patternProperties": {"^b": {}}, "additionalProperties": {"type": "string"}}
        assert prepare(named_by_pattern, {"b": None}) == {"b": None}

    def test_are_dropped_inside_objects_arrays_and_references_too(self) -> None:
        point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
        schema = schema_of(
            {"type": "array", "items": {"$ref": "#/$defs/point"}}, **{"$defs": {"point": point}}
        )
        assert prepare(schema, {"a": [{"x": 1, "y": None}, {"x": None}]}) == {"a": [{"x": 1}, {}]}

    def test_are_kept_as_items_of_an_array(self) -> None:
        schema = schema_of({"type": "array", "items": {"type": "string"}})
        assert prepare(schema, {"a": [None, "x"]}) == {"a": [None, "x"]}

    def test_are_dropped_in_the_only_form_that_can_be_meant(self) -> None:
        point = {"type": "object", "properties": {"x": {"type": "integer"}}}
        assert prepare(schema_of({"anyOf": [point, {"type": "null"}]}), {"a": {"x": None}}) == {"a": {}}
        either = schema_of({"anyOf": [point, {"type": "object"}]})
        assert prepare(either, {"a": {"x": None}}) == {"a": {"x": None}}

    @pytest.mark.parametrize("value", [False, 0, "", [], {}, 0.0])
    def test_are_not_confused_with_other_empty_values(self, value: Any) -> None:
        assert prepare(schema_of({"type": "string"}), {"a": value}) == {"a": value}


class TestTexts:
    """Field report 70: models write arrays and objects as JSON text."""

    @pytest.mark.parametrize(
        ("member", "text", "value"),
        [
            ({"type": "array"}, "[1, 2]", [1, 2]),
            ({"type": "object"}, '{"a": 1}', {"a": 1}),
            ({"type": ["array", "null"]}, ' ["x"]\n', ["x"]),
            ({"type": ["array", "object"]}, '{"a": 1}', {"a": 1}),
            ({"anyOf": [{"type": "array"}, {"type": "null"}]}, "[]", []),
            ({"$ref": "#/$defs/list"}, "[1]", [1]),
            ({"type": "array", "items": {"type": "object"}}, '["{}", {}]', [{}, {}]),
            ({"type": "array", "items": {"type": "object"}}, '[{"b": 1}]', [{"b": 1}]),
            ({"type": "object", "properties": {"b": {"type": "array"}}}, '{"b": "[1]"}', {"b": [1]}),
            ({"type": "object", "properties": {"b": {"type": "string"}}}, '{"b": null}', {}),
        ],
    )
    def test_are_decoded_where_only_what_they_hold_is_wanted(
        self, member: Any, text: str, value: Any
    ) -> None:
        assert prepare(schema_of(member, **{"$defs": {"list": {"type": "array"}}}), {"a": text}) == {
            "a": value
        }

    @pytest.mark.parametrize(
        ("member", "text"),
        [
            ({"type": "string"}, "[1, 2]"),
            ({"type": ["array", "string"]}, "[1]"),
            ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]"),
            ({}, "[1]"),
            ({"enum": [["a"], "[1]"]}, "[1]"),
            ({"type": "array"}, '{"a": 1}'),
            ({"type": "object"}, "[1]"),
            ({"type": "array"}, "[1, 2"),
            ({"type": "array"}, "a, b"),
            ({"type": "array"}, "null"),
            ({"type": "array"}, "12"),
            ({"type": "array"}, '"[1]"'),
            ({"type": "array"}, ""),
            ({"type": "array"}, "  "),
            ({"type": "array"}, "[NaN]"),
            ({"type": "array"}, '["\ud800"]'),
            ({"type": "array"}, "[" * 100_000),
            ({"type": "integer"}, "12"),
            ({"type": "boolean"}, "true"),
        ],
    )
    def test_are_left_where_a_string_may_be_meant_or_nothing_fitting_is_in_them(
        self, member: Any, text: str
    ) -> None:
        arguments = {"a": text}
        assert prepare(schema_of(member), arguments) is arguments

    def test_are_decoded_as_items_where_items_want_objects(self) -> None:
        schema = schema_of({"type": "array", "items": {"type": "object"}})
        assert prepare(schema, {"a": ['{"b": 1}', {"c": 2}, "x"]}) == {"a": [{"b": 1}, {"c": 2}, "x"]}

    def test_are_left_in_a_tuple(self) -> None:
        for schema in (
            {"prefixItems": [{"type": "object"}], "items": {"type": "object"}},
            {"items": [{"type": "object"}]},
        ):
            assert prepare(schema_of(schema | {"type": "array"}), {"a": ["{}"]}) == {"a": ["{}"]}


class TestReferences:
    def test_beside_a_reference_of_draft_7_nothing_counts(self) -> None:
        schema = schema_of(
            {"$ref": "#/definitions/any", "type": "string", "allOf": [{"type": "string"}]},
            definitions={"any": {}},
        )
        assert prepare(schema, {"a": None}) == {}
        assert prepare({"$schema": OLD} | schema, {"a": None}) == {"a": None}
        assert prepare(
            {
                "$schema": OLD,
                "$ref": "#/definitions/x",
                "definitions": {"x": schema_of({"type": "string"})},
                "properties": {"b": {"type": "string"}},
            },
            {"a": None, "b": None},
        ) == {"b": None}

    def test_in_a_document_with_inner_identifiers_are_not_followed(self) -> None:
        schema = schema_of(
            {"$ref": "#/$defs/x"}, **{"$defs": {"x": {"type": "string"}, "y": [{"$id": "other"}]}}
        )
        assert prepare(schema, {"a": None}) == {"a": None}

    def test_that_go_in_circles_end(self) -> None:
        schema = schema_of({"$ref": "#/$defs/x"}, **{"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}}})
        assert prepare(schema, {"a": None, "b": "[1]"}) == {"a": None, "b": "[1]"}
        tree = {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}},
        }
        assert prepare(tree, {"kids": '[{"n": null, "kids": "[]"}]'}) == {"kids": [{"kids": []}]}

    @pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
    def test_that_double_at_every_level_are_no_burden(self, keyword: str) -> None:
        definitions: dict[str, Any] = {
            f"d{level}": {
                keyword: [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}],
                "properties": {"x": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": "#/$defs/d0"}]}},
            }
            for level in range(40)
        }
        schema = {"$ref": "#/$defs/d0", "$defs": definitions | {"d40": {"type": "object"}}}
        value: Any = None
        for _ in range(40):
            value = {"x": value}
        assert prepare(schema, {"x": value}) == {"x": value}

    def test_a_very_deep_value_is_left_as_it_is_at_the_bottom(self) -> None:
        deep: Any = {"n": None}
        for _ in range(10_000):
            deep = {"x": deep}
        schema = {"properties": {"x": {"$ref": "#"}, "n": {"type": "integer"}}}
        arguments = {"x": deep, "n": None}
        assert prepare(schema, arguments)["x"] is deep
        assert "n" not in prepare(schema, arguments)


_leaf_schemas = st.sampled_from(
    [
        *({"type": kind} for kind in ("string", "integer", "array", "object", "null")),
        *({"type": kinds} for kinds in (["string", "null"], ["object", "array"])),
        *({"$ref": f"#/$defs/{name}"} for name in ("text", "loop", "thing")),
        {"enum": ["[1]", 1, None]},
        {"const": "[]"},
        {},
        True,
        False,
    ]
)
_names = st.sampled_from(["a", "b", "c"])


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", ["object", "null"]]),
            "properties": st.dictionaries(_names, inner, max_size=3),
            "additionalProperties": st.just(value=False) | inner,
            "patternProperties": st.dictionaries(st.just("^a"), inner),
            "required": st.lists(_names, max_size=1),
            "items": inner,
            "prefixItems": some,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
        },
    )


_definitions = {
    "text": {"type": "string"},
    "thing": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "object"}}},
    },
    "loop": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/loop"}, "b": {"type": ["integer", "null"]}},
    },
}
schemas = st.builds(
    lambda schema, members: {"$defs": _definitions, "properties": members} | schema,
    _compound(st.recursive(_leaf_schemas, _compound, max_leaves=4)),
    st.dictionaries(_names, st.recursive(_leaf_schemas, _compound, max_leaves=3), min_size=1),
)
arguments_of_any_kind = st.dictionaries(
    _names,
    st.recursive(
        st.sampled_from(
            [None, 1, "", "x", "[1]", "[]", "{}", '{"a": null}', '[{"b": "[]"}]', '{"a":"{}","b":null}']
        ),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner, max_size=2),
        max_leaves=4,
    ),
)


class TestLaws:
    @given(schemas, arguments_of_any_kind)
    def test_what_fits_already_comes_back_as_it_is(
        self, schema: dict[str, Any], given_: dict[str, Any]
    ) -> None:
        try:
            fits = Schema(schema).ok(given_)
        except SchemaError:
            return
        if fits:
            assert prepare(schema, given_) is given_

    @given(schemas, arguments_of_any_kind)
    def test_once_is_enough(self, schema: dict[str, Any], given_: dict[str, Any]) -> None:
        prepared = prepare(schema, given_)
        assert prepare(schema, prepared) == prepared

    @given(schemas, arguments_of_any_kind)
    def test_nothing_is_added_and_what_was_given_is_not_touched(
        self, schema: dict[str, Any], given_: dict[str, Any]
    ) -> None:
        before = copy.deepcopy(given_)
        prepared = prepare(schema, given_)
        assert given_ == before
        assert [key for key in given_ if key in prepared] == list(prepared)

    @given(schemas, arguments_of_any_kind)
    def test_labels_stay_where_they_were_and_none_is_lost(
        self, schema: dict[str, Any], given_: dict[str, Any]
    ) -> None:
        parts = {"/a": UNTRUSTED, "/b/0": SECRET, "/c": TRUSTED}
        labelled = Labelled(given_, UNTRUSTED, parts)
        prepared = prepare_labelled(schema, labelled)
        assert prepared.value == prepare(schema, given_)
        assert prepared.whole == labelled.whole
        for pointer in ("", "/a", "/a/0", "/b", "/b/0/a", "/c", "/d"):
            assert prepared.at(pointer) == labelled.at(pointer)


def test_the_label_of_a_dropped_null_still_counts_for_the_call() -> None:
    labelled = Labelled({"a": None, "b": 1}, TRUSTED, {"/a": SECRET})
    prepared = prepare_labelled(schema_of({"type": "string"}), labelled)
    assert prepared.value == {"b": 1}
    assert prepared.whole == SECRET
    assert prepared.at("/b") == TRUSTED


def test_labelled_arguments_that_fit_are_the_same_object() -> None:
    labelled = Labelled({"a": "x"}, UNTRUSTED)
    assert prepare_labelled(schema_of({"type": "string"}), labelled) is labelled


def test_whole_arguments_are_never_decoded() -> None:
    """They are a mapping by type; what came as one text is for the caller to refuse."""
    assert prepare({"type": "object"}, {"arguments": '{"a": 1}'}) == {"arguments": '{"a": 1}'}
