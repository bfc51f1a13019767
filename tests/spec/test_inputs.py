"""Run inputs are filled in, checked all together, and keep their labels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InputError
from luthier.spec import bind_inputs, check_inputs, read_ensemble, read_input_text
from luthier.spec.values import WORDS
from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.tools import Envelope


def ensemble(inputs: dict[str, Any]) -> Any:
    steps = [{"name": "a", "operation": "transform", "config": {"value": 1}}]
    return read_ensemble({"name": "e", "inputs": inputs, "agents": steps})


def faults(inputs: dict[str, Any], given: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        check_inputs(ensemble(inputs), given)
    assert caught.value.kind == "arguments"
    return [str(fault) for fault in caught.value.faults]


def test_defaults_are_filled_in_and_undeclared_values_kept() -> None:
    declared = ensemble({"a": 5, "b": {"type": "string", "default": "x"}, "c": "string", "d": None})
    assert check_inputs(declared, {"z": [1]}) == {"z": [1], "a": 5, "b": "x"}
    assert check_inputs(declared, {"a": None, "b": "y"}) == {"a": None, "b": "y"}
    assert check_inputs(declared, {}) == {"a": 5, "b": "x"}


FITTING: list[tuple[str, list[Any], list[Any]]] = [
    ("string", ["", "x"], [1, True, [], {}]),
    ("number", [1, 1.5, -3, 2**70], ["1", True, [], {}]),
    ("integer", [1, 4.0, 2**70], ["1", 1.5, True, False]),
    ("boolean", [True, False], [0, 1, "true"]),
    ("array", [[], [1], (1, 2)], ["[]", {}]),
    ("object", [{}, {"a": 1}], [[], "{}"]),
]


@pytest.mark.parametrize(("type_", "good", "bad"), FITTING, ids=[case[0] for case in FITTING])
def test_types_are_those_of_json(type_: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert check_inputs(ensemble({"x": type_}), {"x": value}) == {"x": value}
    for value in bad:
        assert faults({"x": type_}, {"x": value})[0].startswith(f"the input `x` must be {WORDS[type_]}, not ")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1.0, 1), (-0.0, 0), (3, 3), (2.0**53, 2**53), (2**70, 2**70), (1e300, 1e300), (None, None)],
)
def test_a_declared_integer_is_an_int_from_there_on(given: Any, expected: Any) -> None:
    declared = ensemble({"n": "integer", "copy": "${input.n}", "said": {"type": "integer", "default": given}})
    for bound in (check_inputs(declared, {"n": given}), check_inputs(declared, {"n": given, "said": given})):
        for name in ("n", "copy", "said"):
            assert (bound[name], type(bound[name])) == (expected, type(expected)), name


def test_only_a_declared_integer_is_made_one() -> None:
    inputs = {"n": "number", "any": None, "list": "array", "some": {"enum": [1, 2]}}
    given: dict[str, Any] = {"n": 1.0, "any": 1.0, "list": [1.0], "some": 1.0, "strange": {"a": 1.0}}
    assert repr(check_inputs(ensemble(inputs), given)) == repr(given)


def test_an_integer_keeps_its_label() -> None:
    given = Labelled({"n": 1.0}, parts={"/n": SECRET})
    declared = ensemble({"n": "integer", "copy": {"type": "integer", "default": "${input.n}"}})
    bound = bind_inputs(declared, given)
    assert (repr(bound.value), bound.at("/n"), bound.at("/copy")) == ("{'n': 1, 'copy': 1}", SECRET, SECRET)


@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), "1", True])
def test_what_is_no_integer_is_not_made_one(value: Any) -> None:
    assert len(faults({"n": "integer"}, {"n": value})) == 1


def test_all_faults_come_together() -> None:
    inputs = {
        "owner": {"type": "string", "required": True, "description": "whose it is"},
        "count": {"type": "integer"},
        "kind": {"enum": ["a", "b"]},
        "made": {"type": "number", "default": "${input.text}"},
        "chosen": {"enum": [1, 2], "default": "${input.text}"},
        "list": {"type": "array", "required": True},
        "fails": "${parse(input.text)}",
    }
    given = {"ownr": "x", "count": 1.5, "kind": "c", "text": "t", "list": None, "odd": {1, 2}}
    told = faults(inputs, given)
    assert told[:-1] == [
        "the input `count` must be a whole number, not the number 1.5",
        'the input `kind` must be one of "a", "b", not "c"',
        "the input `list` is required and cannot be null",
        "the input `odd` holds a Python set, which is no JSON value",
        "the input `owner` is missing: whose it is (did you mean ownr?)",
        "the default of `made` must be a number, not text",
        'the default of `chosen` must be one of 1, 2, not "t"',
    ]
    assert told[-1].startswith("the default of `fails` fails: ")


def test_null_stands_for_nothing_where_nothing_is_required() -> None:
    assert check_inputs(ensemble({"x": {"type": "string", "default": "d"}}), {"x": None}) == {"x": None}
    assert faults({"x": {"required": True, "default": 1}}, {"x": None}) == [
        "the input `x` is required and cannot be null"
    ]
    assert check_inputs(ensemble({"x": {"required": True, "default": 1}}), {}) == {"x": 1}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (float("nan"), "holds nan, which JSON does not have"),
        ({"a": [float("inf")]}, "holds inf, which JSON does not have"),
        ({1: 2}, "holds a mapping with keys that are not text"),
        ([object], "holds a Python type, which is no JSON value"),
        (b"x", "holds a Python bytes, which is no JSON value"),
    ],
)
def test_values_must_be_json(value: Any, fault: str) -> None:
    assert faults({}, {"x": value}) == [f"the input `x` {fault}"]


def test_values_that_are_nested_without_end_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    assert faults({}, {"x": deep}) == ["the input `x` is nested too deeply"]


def test_true_is_not_one_in_an_enum() -> None:
    assert faults({"x": {"enum": [1, "a"]}}, {"x": True}) == ['the input `x` must be one of 1, "a", not true']
    assert check_inputs(ensemble({"x": {"enum": [True, [1]]}}), {"x": [1]}) == {"x": [1]}


def test_defaults_may_name_inputs_in_any_order() -> None:
    inputs = {
        "url": "${input.base}/x",
        "base": "https://${input.host}",
        "host": "h",
        "raw": "${input.given}",
        "all": "${input.host}${input.nothing}",
    }
    assert check_inputs(ensemble(inputs), {"given": [1]}) == {
        "given": [1],
        "url": "https://h/x",
        "base": "https://h",
        "host": "h",
        "raw": [1],
        "all": "h",
    }
    assert check_inputs(ensemble(inputs), {"base": "b", "given": 1})["url"] == "b/x"


def test_now_in_a_default_is_the_start_of_the_run() -> None:
    declared = ensemble({"at": "${now()}"})
    assert check_inputs(declared, {}, now=0.0) == check_inputs(declared, {}, now=0.0)
    assert check_inputs(declared, {}, now=0.0) != check_inputs(declared, {}, now=1000.0)
    assert check_inputs(declared, {})["at"] != check_inputs(declared, {}, now=0.0)["at"]


def test_labels_travel_into_defaults() -> None:
    declared = ensemble({"copy": "${input.secret}", "both": "${input.secret}${input.web}", "fixed": 1})
    given = Labelled({"secret": "s", "web": "w"}, parts={"/secret": SECRET, "/web": UNTRUSTED})
    bound = bind_inputs(declared, given)
    assert bound.value == {"secret": "s", "web": "w", "copy": "s", "both": "sw", "fixed": 1}
    assert bound.at("/copy") == SECRET
    assert bound.at("/both") == SECRET.join(UNTRUSTED)
    assert bound.at("/fixed").confidentiality == 0
    assert bound.at("/web") == UNTRUSTED


def test_a_tool_s_result_fits_by_its_content_and_stays_what_it_is() -> None:
    result = Envelope({"tool": "t", "server": "s", "content": {"n": 1}, "duration": 1.0, "isError": False})
    bound = bind_inputs(ensemble({"x": {"type": "object"}}), Labelled({"x": result}))
    assert bound.value["x"] is result
    assert faults({"x": "string"}, {"x": result}) == ["the input `x` must be text, not a mapping"]


TEXTS: list[tuple[dict[str, Any], str, Any]] = [
    ({"x": "string"}, "5", "5"),
    ({"x": {"enum": ["5", "6"]}}, "5", "5"),
    ({"x": "number"}, "5", 5),
    ({"x": "number"}, "five", "five"),
    ({"x": "boolean"}, "true", True),
    ({"x": "array"}, "[1, 2]", [1, 2]),
    ({"x": "object"}, '{"a": null}', {"a": None}),
    ({"x": 5}, "6", 6),
    ({"x": "some text"}, "6", 6),
    ({"x": {"enum": [5, "6"]}}, "6", 6),
    ({}, "null", None),
    ({}, "a=b", "a=b"),
    ({}, "NaN", "NaN"),
    ({}, "123456789012345678901234567890", 123456789012345678901234567890),
    ({}, "\udcff", "\udcff"),
    ({}, "", ""),
]


@pytest.mark.parametrize(("inputs", "text", "value"), TEXTS)
def test_text_from_the_command_line_is_read_by_the_declared_type(
    inputs: dict[str, Any], text: str, value: Any
) -> None:
    read = read_input_text(ensemble(inputs), "x", text)
    assert (read, type(read)) == (value, type(value))


@settings(deadline=None)
@given(st.text())
def test_a_text_input_takes_any_text_as_it_is(text: str) -> None:
    assert read_input_text(ensemble({"x": "string"}), "x", text) == text
