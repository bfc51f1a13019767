"""Schemas judge values, say what is wrong in plain words, and are read leniently."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import SchemaError
from luthier.tools.schema import MAX_FAULTS, Schema, SchemaFault

OLD = "http://json-schema.org/draft-07/schema"
OBJECT = {
    "type": "object",
    "properties": {"repo_path": {"type": "string"}, "max_count": {"type": "integer", "minimum": 1}},
    "required": ["repo_path"],
    "additionalProperties": False,
}
EVERYTHING: list[bool | dict[str, Any]] = [True, {}]
NOTHING: list[bool | dict[str, Any]] = [False, {"not": {}}]

values = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


def told(definition: Any, value: Any) -> list[str]:
    return [str(fault) for fault in Schema(definition).faults(value)]


class TestJudging:
    def test_a_value_that_fits_has_no_faults(self) -> None:
        schema = Schema(OBJECT)
        assert schema.ok({"repo_path": ".", "max_count": 3})
        assert schema.faults({"repo_path": ".", "max_count": 3}) == ()

    def test_every_fault_is_told_with_its_place_and_rule(self) -> None:
        schema = Schema(OBJECT)
        assert not schema.ok({"max_count": 0, "repo_paht": "."})
        assert set(schema.faults({"max_count": 0, "repo_paht": "."})) == {
            SchemaFault("", "required", 'lacks the required property "repo_path"'),
            SchemaFault("/max_count", "minimum", "must be at least 1"),
            SchemaFault(
                "/repo_paht", "additionalProperties", 'is not a known property; did you mean "repo_path"?'
            ),
        }

    @given(values)
    def test_true_and_the_empty_schema_accept_everything_and_false_nothing(self, value: Any) -> None:
        for everything in map(Schema, EVERYTHING):
            assert everything.ok(value)
        for nothing in map(Schema, NOTHING):
            assert not nothing.ok(value)
            assert nothing.faults(value)

    @given(values)
    def test_both_ways_of_asking_agree(self, value: Any) -> None:
        schema = Schema(
            {"anyOf": [OBJECT, {"type": "array", "items": {"type": ["null", "string"]}}, {"type": "integer"}]}
        )
        assert schema.ok(value) == (not schema.faults(value))

    def test_at_most_twenty_faults_are_told(self) -> None:
        assert len(Schema({"items": {"type": "integer"}}).faults(["x"] * 100)) == MAX_FAULTS == 20

    def test_formats_are_annotations(self) -> None:
        for format_name in ("date-time", "uri", "email", "made-up"):
            assert Schema({"type": "string", "format": format_name}).ok("neither")
            assert Schema({"$schema": f"{OLD}#", "format": format_name}).ok("neither")

    def test_whole_floats_are_integers_and_huge_integers_too(self) -> None:
        assert Schema({"type": "integer"}).ok(1.0)
        assert Schema({"type": "integer", "minimum": 2}).ok(10**40)

    def test_tuples_are_arrays(self) -> None:
        assert Schema({"type": "array", "items": {"type": "integer"}}).ok((1, 2))

    @pytest.mark.parametrize(
        "value",
        ["\ud800", object(), {1: 2}, b"x", {"a": {1, 2}}],
        ids=["surrogate", "object", "number as key", "bytes", "set"],
    )
    def test_what_is_not_json_fits_nothing_and_raises_nothing(self, value: Any) -> None:
        schema = Schema({"type": ["string", "object"], "additionalProperties": {"type": "string"}})
        assert not schema.ok(value)
        assert [fault.rule for fault in schema.faults(value)] == ["json"]

    def test_nan_is_no_number(self) -> None:
        assert not Schema({"type": "number"}).ok(math.nan)


class TestWords:
    @pytest.mark.parametrize(
        ("definition", "value", "words"),
        [
            ({"type": "string"}, 1, "must be a string, not an integer"),
            ({"type": "string"}, 1.5, "must be a string, not a number"),
            ({"type": "string"}, None, "must be a string, not null"),
            ({"type": "string"}, True, "must be a string, not a boolean"),
            (
                {"type": ["null", "integer", "array"]},
                "x",
                "must be an array, an integer or null, not a string",
            ),
            ({"type": "object"}, [1], "must be an object, not an array"),
            ({"type": "boolean"}, {}, "must be a boolean, not an object"),
            ({"enum": ["red", "green"]}, "rde", 'must be one of "red" or "green"; did you mean "red"?'),
            ({"enum": ["red", 2, None]}, 7, 'must be one of "red", 2 or null'),
            ({"enum": ["only"]}, 7, 'must be "only"'),
            ({"enum": list(range(30))}, 99, "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 or 20 more"),
            ({"const": {"a": 1}}, 1, 'must be {"a":1}'),
            ({"maximum": 3}, 4, "must be at most 3"),
            ({"exclusiveMinimum": 3}, 3, "must be more than 3"),
            ({"exclusiveMaximum": 3}, 3, "must be less than 3"),
            ({"multipleOf": 5}, 3, "must be a multiple of 5"),
            ({"minLength": 1}, "", "must have at least 1 character"),
            ({"maxLength": 2}, "abc", "must have at most 2 characters"),
            ({"minItems": 2}, [], "must have at least 2 items"),
            ({"maxItems": 1}, [1, 2], "must have at most 1 item"),
            ({"minProperties": 2}, {}, "must have at least 2 properties"),
            ({"maxProperties": 1}, {"a": 1, "b": 2}, "must have at most 1 property"),
            ({"uniqueItems": True}, [1, 1], "must not hold the same item twice"),
            ({"pattern": "^a"}, "b", 'must match the pattern "^a"'),
            (
                {"propertyNames": {"pattern": "^a"}},
                {"b": 1},
                'has a property whose name must match the pattern "^a"',
            ),
            ({"contains": {"const": 1}}, [2], "does not hold the items that it must contain"),
            ({"unevaluatedItems": False}, [1], "has items that are not allowed"),
            ({"properties": {"a": False}}, {"a": 1}, "/a: is not allowed"),
            ({"not": {"type": "integer"}}, 1, "has the very form that is forbidden here"),
            (
                {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
                1,
                "fits 2 forms where it must fit exactly one",
            ),
            ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, 'lacks the required property "b"'),
            ({"required": ["a/b"]}, {}, 'lacks the required property "a/b"'),
            (
                {"properties": {"a/b~": {"type": "string"}}},
                {"a/b~": 1},
                "/a~1b~0: must be a string, not an integer",
            ),
            (
                {"items": {"items": {"type": "string"}}},
                [[], ["x", 1]],
                "/1/1: must be a string, not an integer",
            ),
        ],
    )
    def test_a_fault_says_what_was_expected_and_what_kind_of_thing_was_there(
        self, definition: Any, value: Any, words: str
    ) -> None:
        assert told(definition, value) == [words]

    @pytest.mark.parametrize(
        ("definition", "words"),
        [
            ({"$schema": OLD, "contentEncoding": "base64"}, 'must be encoded as "base64"'),
            ({"$schema": OLD, "contentMediaType": "application/json"}, 'breaks the rule "contentMediaType"'),
        ],
    )
    def test_rules_of_older_dialects_have_words_too(self, definition: Any, words: str) -> None:
        assert told(definition, "$$") == [words]

    def test_items_beyond_a_draft_7_tuple_are_too_many(self) -> None:
        schema = {
            "$schema": f"{OLD}#",
            "items": [{}],
            "additionalItems": False,
        }
        assert told(schema, [1, 2]) == ["must have at most 1 item"]

    def test_unknown_properties_are_told_one_by_one_with_near_names(self) -> None:
        schema = {"properties": {"name": {}, "path": {}}, "additionalProperties": False}
        assert told(schema, {"nmae": 1, "zzz": 2}) == [
            '/nmae: is not a known property; did you mean "name"?',
            '/zzz: is not a known property; known are "name" and "path"',
        ]

    def test_a_property_that_is_there_already_is_not_proposed(self) -> None:
        schema = {"properties": {"path": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False}
        assert told(schema, {"path": 1, "paths": 2}) == ['/paths: is not a known property; known are "path"']

    def test_a_long_list_of_known_properties_is_not_told(self) -> None:
        schema = {
            "properties": {f"property_{number}": {} for number in range(11)},
            "additionalProperties": False,
        }
        assert told(schema, {"zzz": 1}) == ["/zzz: is not a known property"]

    def test_near_names_are_found_behind_references(self) -> None:
        schema = {
            "properties": {"where": {"$ref": "#/$defs/place"}},
            "$defs": {"place": {"properties": {"path": {}}, "additionalProperties": False}},
        }
        assert told(schema, {"where": {"pth": 1}}) == [
            '/where/pth: is not a known property; did you mean "path"?'
        ]

    def test_unevaluated_properties_are_unknown_ones(self) -> None:
        schema = {"properties": {"path": {}}, "unevaluatedProperties": False}
        assert told(schema, {"pth": 1}) == ['/pth: is not a known property; did you mean "path"?']

    def test_what_may_be_null_is_explained_by_its_other_form(self) -> None:
        optional = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}
        assert told(optional, [1, "x"]) == ["/1: must be an integer, not a string"]
        assert told(optional, "x") == ["must be an array or null, not a string"]

    def test_forms_are_told_apart_by_a_constant_member(self) -> None:
        schema = {
            "oneOf": [
                {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "url"}, "url": {"type": "string"}}, "required": ["kind"]},
            ]
        }
        assert told(schema, {"kind": "url", "url": 5}) == ["/url: must be a string, not an integer"]

    def test_where_no_form_is_likelier_each_says_what_it_lacks(self) -> None:
        schema = {
            "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]
        }
        assert told(schema, {"b": 1}) == [
            (
                "fits none of the 2 forms allowed here "
                '(lacks the required property "a"; /b must be a string, not an integer)'
            )
        ]

    def test_of_many_forms_a_few_are_told(self) -> None:
        schema = {"anyOf": [{"required": [f"p{number}"]} for number in range(9)]}
        (words,) = told(schema, {})
        assert words.endswith('lacks the required property "p3"; and 5 more)')

    def test_no_value_is_ever_shown(self) -> None:
        secret = "hunter2-" * 3
        schema = {
            "properties": {
                "type": {"type": "integer"},
                "enum": {"enum": ["a", "b"]},
                "const": {"const": 1},
                "pattern": {"pattern": "^a"},
                "length": {"maxLength": 1},
                "not": {"not": {"type": "string"}},
                "any": {"anyOf": [{"type": "null"}, {"const": 1}]},
                "one": {"oneOf": [True, True]},
            }
        }
        value = dict.fromkeys(schema["properties"], secret)
        assert len(told(schema, value)) == 8
        assert "hunter2" not in " ".join(told(schema, value))

    def test_words_stay_short_however_large_value_and_schema_are(self) -> None:
        large = "x" * 1_000_000
        schema = {
            "properties": {
                "a": {"enum": [large, large + "y"]},
                "b": {"const": [large]},
                "c": {"pattern": f"^{large[:5000]}$"},
            },
            "required": [large],
        }
        for words in told(schema, {"a": large + "z", "b": large, "c": large}):
            assert len(words) < 500

    def test_words_are_safe_to_show(self) -> None:
        (words,) = told({"required": ["\x1b[2J\nroot"]}, {})
        assert words == 'lacks the required property "\\x1b[2J root"'


class TestReading:
    def test_nothing_is_checked_before_the_first_use_and_the_verdict_is_kept(self) -> None:
        schema = Schema({"type": "strin"})
        for _ in range(2):
            with pytest.raises(SchemaError, match="not a valid one"):
                schema.ok(1)
        with pytest.raises(SchemaError, match="not a valid one"):
            schema.faults(1)

    def test_a_verdict_is_not_changed_by_what_happens_to_the_definition(self) -> None:
        definition: dict[str, Any] = {"type": "strin"}
        schema = Schema(definition)
        with pytest.raises(SchemaError):
            schema.compile()
        definition["type"] = "string"
        with pytest.raises(SchemaError):
            schema.ok("x")

    def test_it_is_compiled_once(self) -> None:
        definition: dict[str, Any] = {"type": "string"}
        schema = Schema(definition)
        schema.compile()
        definition["type"] = "integer"
        assert schema.ok("x")

    @pytest.mark.parametrize(
        ("definition", "said"),
        [
            (
                {"properties": {"a": {"required": True}}},
                "/properties/a/required must be an array, not a boolean",
            ),
            ({"type": "strin"}, "/type"),
            ({"properties": None}, "/properties must be an object, not null"),
            ({"minLength": -1}, "/minLength must be at least 0"),
            ({"$ref": "#/$defs/nothing"}, "a reference that leads nowhere"),
            ({"$ref": "#nothing"}, "a reference that leads nowhere"),
            ({"$id": "::bad"}, "a reference that leads nowhere"),
            ({"a": {1, 2}}, "a value of type set"),
            ({"a": {1: 2}}, "a key that is not a string"),
            ({"const": "\ud800"}, "cannot be used"),
        ],
    )
    def test_what_cannot_be_used_says_why(self, definition: Any, said: str) -> None:
        with pytest.raises(SchemaError, match=said):
            Schema(definition).compile()

    @pytest.mark.parametrize(
        "dialect",
        [
            f"{OLD}#",
            OLD,
            "https://json-schema.org/draft-07/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-04/schema#",
            "https://json-schema.org/draft/2019-09/schema",
        ],
    )
    def test_a_dialect_that_is_named_is_honoured(self, dialect: str) -> None:
        schema = Schema({"$schema": dialect, "items": [{"type": "string"}]})
        assert schema.notes == ()
        assert schema.ok(["a", 1])
        assert not schema.ok([1])

    def test_in_draft_7_a_reference_stands_alone(self) -> None:
        schema = {"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {}}}
        assert Schema({"$schema": f"{OLD}#"} | schema).ok(1)
        assert not Schema(schema).ok(1)

    def test_a_named_dialect_is_not_read_as_another(self) -> None:
        with pytest.raises(SchemaError, match="/items must be"):
            Schema({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}).compile()

    @pytest.mark.parametrize(
        ("definition", "good", "bad", "note"),
        [
            ({"items": [{"type": "string"}]}, ["a"], [1], "it is read as draft 7"),
            ({"minimum": 1, "exclusiveMinimum": True}, 2, 1, "it is read as draft 4"),
        ],
    )
    def test_where_none_is_named_an_older_one_may_fit(
        self, definition: Any, good: Any, bad: Any, note: str
    ) -> None:
        schema = Schema(definition)
        assert schema.notes == (note,)
        assert schema.ok(good)
        assert not schema.ok(bad)

    @pytest.mark.parametrize(
        "dialect",
        [
            "http://json-schema.org/draft-03/schema#",
            "http://127.0.0.1:9/x",
            "draft7",
            "",
            5,
            ["a"],
            None,
            "::bad",
        ],
    )
    def test_a_dialect_that_is_not_known_is_passed_over_and_told(self, dialect: Any) -> None:
        schema = Schema({"$schema": dialect, "type": "string"})
        assert schema.ok("x")
        assert not schema.ok(1)
        if dialect is not None:
            assert "is not known" in schema.notes[0]

    @pytest.mark.parametrize(
        "definition",
        [
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
            {"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
            {"$ref": "#/x/0/y%20z", "x": [{"y z": {"type": "string"}}]},
            {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "string"}}},
            {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}},
            {
                "$ref": "b.json",
                "$id": "http://x.test/a.json",
                "$defs": {"a": {"$id": "b.json", "type": "string"}},
            },
            {"$ref": "#b", "$id": "urn:x:y", "$defs": {"a": {"$anchor": "b", "type": "string"}}},
            {
                "$schema": f"{OLD}#",
                "allOf": [{"$ref": "#a"}],
                "definitions": {"a": {"$id": "#a", "type": "string"}},
            },
            {"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "string"}}},
        ],
    )
    def test_references_inside_the_document_are_followed(self, definition: Any) -> None:
        assert Schema(definition).ok("x")
        assert not Schema(definition).ok(1)

    def test_a_schema_may_refer_to_itself_for_members(self) -> None:
        node = {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }
        schema = Schema({"$ref": "#/$defs/node", "$defs": {"node": node}})
        assert schema.ok({"kids": [{"kids": [{}]}, {}]})
        assert [str(fault) for fault in schema.faults({"kids": [{"kids": [3]}]})] == [
            "/kids/0/kids/0: must be an object, not an integer"
        ]

    def test_a_dynamic_reference_meets_every_level(self) -> None:
        schema = Schema(
            {"$dynamicAnchor": "node", "type": "object", "properties": {"child": {"$dynamicRef": "#node"}}}
        )
        assert schema.ok({"child": {"child": {}}})
        assert not schema.ok({"child": {"child": 1}})

    def test_the_dialect_itself_can_be_referred_to(self) -> None:
        schema = Schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
        assert schema.ok({"type": "string"})
        assert not schema.ok({"type": "strin"})
