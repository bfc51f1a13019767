"""No schema and no value makes a validator run for long: work is counted first, and bounded."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SchemaError
from luthier.tools import schema_bounds
from luthier.tools.schema import Schema
from luthier.tools.schema_bounds import Work, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def quickly(seconds: float = 1.0) -> Iterator[None]:
    """In this much time of the processor; without the bounds these cases take minutes to for ever."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


def nested(depth: int, bottom: Any = 1, key: str | None = None) -> Any:
    value = bottom
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


def doubling(depth: int, reference: Any, wrap: Any) -> dict[str, Any]:
    """Definitions of which each asks the next one twice."""
    definitions = {f"d{level}": wrap([reference(level + 1), reference(level + 1)]) for level in range(depth)}
    last = {f"d{depth}": {"type": "integer"}}
    return {"$defs": definitions | last, **reference(0)}


def by_pointer(level: int) -> dict[str, Any]:
    return {"$ref": f"#/$defs/d{level}"}


class TestSize:
    def test_64_levels_are_enough_and_65_too_many(self) -> None:
        check_size(nested(63))
        with pytest.raises(SchemaError, match="deeper than 64 levels"):
            check_size(nested(64))

    def test_a_schema_of_a_hundred_thousand_levels_is_refused_at_once(self) -> None:
        with quickly(), pytest.raises(SchemaError, match="deeper"):
            Schema(nested(100_000, {}, "not")).compile()

    def test_50_000_values_are_enough_and_one_more_is_too_many(self) -> None:
        check_size({"enum": [1] * 49_998})
        with pytest.raises(SchemaError, match="more than 50000 values"):
            check_size({"enum": [1] * 49_999})

    def test_4_mebibytes_of_text_are_enough_and_one_character_more_is_too_much(self) -> None:
        limit = schema_bounds.MAX_CHARACTERS
        check_size({"k": "x" * (limit - 1)})
        with pytest.raises(SchemaError, match="larger than"):
            check_size({"k": "x" * limit})
        with pytest.raises(SchemaError, match="larger than"):
            check_size({"x" * (limit + 1): 1})

    def test_200_patterns_are_enough_and_one_more_is_too_many(self) -> None:
        definition: dict[str, Any] = {"properties": {f"p{n}": {"pattern": f"a{n}"} for n in range(200)}}
        Schema(definition).compile()
        definition["patternProperties"] = {"x": True}
        with pytest.raises(SchemaError, match="more than 200 patterns"):
            Schema(definition).compile()

    def test_patterns_are_counted_where_nothing_leads_to_them_too(self) -> None:
        with pytest.raises(SchemaError, match="patterns"):
            Schema({"$defs": {f"d{n}": {"pattern": f"a{n}"} for n in range(201)}}).compile()

    def test_a_schema_as_large_as_they_come_in_the_wild_is_used(self) -> None:
        properties = {
            f"p{n}": {"type": "object", "properties": {"a": {"type": "string"}}} for n in range(3000)
        }
        with quickly(5):
            assert Schema({"properties": properties}).ok({"p1": {"a": "x"}})


class TestCombinations:
    @pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
    def test_references_that_double_at_every_level_are_refused(self, keyword: str) -> None:
        with quickly(), pytest.raises(SchemaError, match="combines more than"):
            Schema(doubling(40, by_pointer, lambda two: {keyword: two})).compile()

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda two: {"if": two[0], "then": two[1]},
            lambda two: {"if": two[0], "else": two[1]},
            lambda two: {"not": two[0], "allOf": [two[1]]},
            lambda two: {"dependentSchemas": {"a": two[0], "b": two[1]}},
            lambda two: {"dependencies": {"a": two[0], "b": two[1]}},
        ],
        ids=["then", "else", "not", "dependentSchemas", "dependencies"],
    )
    def test_so_they_are_under_every_keyword_that_judges_the_same_value(self, wrap: Any) -> None:
        with quickly(), pytest.raises(SchemaError, match="combines more than"):
            Schema(doubling(40, by_pointer, wrap)).compile()

    def test_so_they_are_by_any_name(self) -> None:
        anchored = doubling(40, lambda level: {"$ref": f"#a{level}"}, lambda two: {"allOf": two})
        identified = doubling(
            40, lambda level: {"$ref": f"http://x.test/d{level}"}, lambda two: {"allOf": two}
        )
        dynamic = doubling(40, lambda level: {"$dynamicRef": f"#a{level}"}, lambda two: {"allOf": two})
        draft_4 = {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://x.test/root",
        } | doubling(40, lambda level: {"$ref": f"d{level}"}, lambda two: {"allOf": two})
        draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#"} | doubling(
            40, lambda level: {"$ref": f"#d{level}"}, lambda two: {"allOf": two}
        )
        for level in range(41):
            anchored["$defs"][f"d{level}"]["$anchor"] = f"a{level}"
            identified["$defs"][f"d{level}"]["$id"] = f"http://x.test/d{level}"
            dynamic["$defs"][f"d{level}"]["$dynamicAnchor"] = f"a{level}"
            draft_4["$defs"][f"d{level}"]["id"] = f"d{level}"
            draft_7["$defs"][f"d{level}"]["$id"] = f"#d{level}"
        for definition in (anchored, identified, dynamic, draft_4, draft_7):
            with quickly(), pytest.raises(SchemaError, match="combines more than"):
                Schema(definition).compile()

    def test_so_they_are_inside_a_resource_of_its_own(self) -> None:
        inner = {"$id": "urn:x:inner"} | doubling(40, by_pointer, lambda two: {"allOf": two})
        with quickly(), pytest.raises(SchemaError, match="combines more than"):
            Schema({"$id": "urn:x:outer", "$defs": {"inner": inner}, "$ref": "urn:x:inner"}).compile()

    def test_relative_names_are_followed_from_where_they_stand(self) -> None:
        definition = {"$id": "http://x.test/a/root.json"} | doubling(
            40, lambda level: {"$ref": f"/a/b/d{level}"}, lambda two: {"allOf": two}
        )
        for level in range(41):
            definition["$defs"][f"d{level}"]["$id"] = f"b/d{level}"
        with quickly(), pytest.raises(SchemaError, match="combines more than"):
            Schema(definition).compile()

    @pytest.mark.parametrize(
        "definition",
        [
            {"$ref": "#"},
            {"allOf": [{"$ref": "#"}]},
            {"$recursiveRef": "#"},
            {
                "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
                "$ref": "#/$defs/a",
            },
            {
                "$defs": {
                    f"d{one}": {
                        "allOf": [{"$ref": f"#/$defs/d{other}"} for other in range(8) if other != one]
                    }
                    for one in range(8)
                },
                "$ref": "#/$defs/d0",
            },
        ],
    )
    def test_a_schema_that_asks_itself_about_the_same_value_is_refused(self, definition: Any) -> None:
        with quickly(), pytest.raises(SchemaError, match="would never end"):
            Schema(definition).compile()

    def test_a_chain_of_thousands_of_references_is_no_burden(self) -> None:
        chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)} | {"d3000": {"type": "integer"}}
        with quickly(3):
            try:
                assert not Schema({"$defs": chain, "$ref": "#/$defs/d0"}).ok("x")
            except SchemaError as error:
                assert "cannot be used" in str(error)  # noqa: PT017  (either answer will do, a crash will not)


class TestWorkOnAValue:
    def test_doubling_from_level_to_level_of_the_value_is_cut_short(self) -> None:
        definition = doubling(30, by_pointer, lambda two: {"properties": {"x": {"allOf": two}}})
        schema = Schema(definition)
        with quickly():
            assert schema.ok({"x": 1})
            assert not schema.ok(nested(30, 1, "x"))
            (fault,) = schema.faults(nested(30, 1, "x"))
        assert fault.rule == "size"
        assert "to be checked in time" in fault.message

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda two: {"patternProperties": {"x": two[0], "": two[1]}},
            lambda two: {"properties": {"x": two[0]}, "patternProperties": {"x": two[1]}},
            lambda two: {"additionalProperties": two[0], "unevaluatedProperties": two[1]},
        ],
        ids=["patterns", "name and pattern", "every property"],
    )
    def test_so_it_is_under_every_keyword_that_judges_properties(self, wrap: Any) -> None:
        with quickly():
            assert (
                Work(doubling(30, by_pointer, wrap)).weigh(nested(30, 1, "x")).steps > schema_bounds.MAX_STEPS
            )

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda two: {"items": two[0], "contains": two[1]},
            lambda two: {"prefixItems": [two[0]], "contains": two[1]},
            lambda two: {"additionalItems": two[0], "unevaluatedItems": two[1]},
        ],
        ids=["items", "prefix", "every item"],
    )
    def test_so_it_is_under_every_keyword_that_judges_items(self, wrap: Any) -> None:
        with quickly():
            assert Work(doubling(30, by_pointer, wrap)).weigh(nested(30)).steps > schema_bounds.MAX_STEPS

    def test_recursion_that_doubles_is_cut_short(self) -> None:
        again = {"properties": {"x": {"$ref": "#"}}}
        schema = Schema({"allOf": [again, dict(again)]})
        with quickly():
            assert schema.ok({"x": {"x": {}}})
            assert [fault.rule for fault in schema.faults(nested(60, {}, "x"))] == ["size"]

    def test_a_recursive_schema_meets_an_endlessly_nested_value_without_harm(self) -> None:
        schema = Schema({"type": "array", "items": {"$ref": "#"}})
        assert schema.ok(nested(150, []))
        for depth in (300, 100_000):
            assert not schema.ok(nested(depth, []))
            assert [fault.rule for fault in schema.faults(nested(depth, []))] == ["size"]

    def test_a_large_tree_is_judged_by_a_recursive_schema(self) -> None:
        node = {
            "type": "object",
            "properties": {"kids": {"items": {"$ref": "#"}}},
            "additionalProperties": False,
        }
        tree: dict[str, Any] = {"kids": [{"kids": [{"kids": []} for _ in range(100)]} for _ in range(100)]}
        with quickly():
            assert Schema(node).ok(tree)

    def test_a_large_value_that_does_not_fit_is_told_so_without_details(self) -> None:
        schema = Schema({"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}})
        with quickly():
            assert schema.ok([1] * 100_000)
            (fault,) = schema.faults([1] * 100_000 + ["x"])
        assert fault.message == "does not fit the schema; it is too large to say where"

    def test_telling_why_nothing_of_many_forms_fits_is_bounded(self) -> None:
        schema = Schema(doubling(11, by_pointer, lambda two: {"anyOf": two}))
        with quickly():
            (fault,) = schema.faults("x")
        assert fault.rule == "size"

    def test_a_very_deep_value_that_does_not_fit_a_flat_schema_is_no_harm(self) -> None:
        (fault,) = Schema({"type": "string"}).faults(nested(100_000))
        assert fault.rule in ("type", "json")

    @pytest.mark.parametrize(
        ("definition", "value", "steps"),
        [
            ({}, 1, 1),
            ({"properties": {"a": {}, "b": {}}}, {"a": 1}, 2),
            ({"properties": {"a": {}}}, "a", 1),
            ({"additionalProperties": {}}, {"a": 1, "b": 2}, 3),
            ({"patternProperties": {"x": {}, "y": {}}}, {"a": 1}, 3),
            ({"propertyNames": {}}, {"a": 1, "b": 2}, 3),
            ({"items": {}}, [1, 2, 3], 4),
            ({"prefixItems": [{}, True, {}], "items": {}}, [1, 2, 3], 6),
            ({"items": [{}, {}]}, (1,), 2),
            ({"contains": {}, "unevaluatedItems": {}}, [1], 3),
            ({"allOf": [{}, {"anyOf": [{}]}], "not": {}}, 1, 5),
            ({"$ref": "#/$defs/a", "$defs": {"a": {}, "unused": {}}}, 1, 2),
            ({"properties": {"a": {"$ref": "#"}}}, {"a": {"a": {}}}, 5),
        ],
    )
    def test_every_meeting_of_a_subschema_and_a_value_is_counted(
        self, definition: Any, value: Any, steps: int
    ) -> None:
        assert Work(definition).weigh(value).steps == steps

    @pytest.mark.parametrize(
        ("definition", "value", "text"),
        [
            ({"pattern": "a"}, "12345", 5),
            ({"pattern": "a"}, ["12345"], 0),
            ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "12345", 10),
            ({"patternProperties": {"x": {}, "y": {}}}, {"ab": 1, "c": 2}, 6),
            ({"patternProperties": {"x": {}}}, "text", 0),
            ({"propertyNames": {"pattern": "a"}}, {"ab": 1, "c": 2}, 3),
            ({"items": {"pattern": "a"}}, ["ab", "c"], 3),
        ],
    )
    def test_every_character_that_meets_a_pattern_is_counted(
        self, definition: Any, value: Any, text: int
    ) -> None:
        assert Work(definition).weigh(value).text == text

    @pytest.mark.parametrize(
        ("definition", "light"),
        [
            ({"properties": {f"p{n}": {"type": "string"} for n in range(100)}}, True),
            ({"pattern": "a"}, False),
            ({"patternProperties": {"a": {}}}, False),
            ({"items": {"$ref": "#"}}, False),
            ({"properties": {f"p{n}": {} for n in range(5000)}}, False),
        ],
    )
    def test_most_schemas_need_no_counting(self, definition: Any, *, light: bool) -> None:
        assert Work(definition).light is light


class TestPatternsAndLongTexts:
    @pytest.mark.parametrize("pattern", ["^(a+)+$", "(x+x+)+y", "^([a-z]*)*$", "(a|a)*b", "^(.*a){20}$"])
    def test_a_pattern_that_explodes_elsewhere_is_matched_in_time(self, pattern: str) -> None:
        with quickly():
            Schema({"pattern": pattern}).ok("a" * 50_000 + "!")

    def test_a_text_too_long_to_be_matched_is_judged_by_all_but_the_pattern(self) -> None:
        schema = Schema({"pattern": "^([ab]*a[ab]*){40}c$", "maxLength": 2_000_000})
        with quickly():
            assert not schema.ok("ab" * 1000)
            assert schema.ok("ab" * 500_000)
            assert schema.faults("ab" * 500_000) == ()
            (fault,) = schema.faults("ab" * 1_500_000)
        assert fault.rule == "maxLength"

    def test_a_pattern_whose_machine_is_too_large_is_left_out(self) -> None:
        schema = Schema({"pattern": "^([ab]*a[ab]*){2000}c$"})
        with quickly():
            assert schema.ok("ab" * 5000)
        assert "is not checked" in schema.notes[0]

    def test_two_hundred_heavy_patterns_are_compiled_in_time(self) -> None:
        with quickly(3):
            Schema({"allOf": [{"pattern": f"^(.*\\w.*){{20}}{n}$"} for n in range(200)]}).compile()
