"""No expression can hang or eat the memory, whatever it says and whatever data it gets."""

from __future__ import annotations

import inspect
import json
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ExpressionError
from luthier.expr import Limits, Scope, compile_value, parse
from luthier.taint import Labelled

if TYPE_CHECKING:
    from collections.abc import Callable

KIB = 1024
BIG = "x" * (512 * KIB)
LONG = list(range(20_000))
BUDGET = 1024 * KIB
"""A 64th of what an evaluation usually may, so that what it must not exceed here is a 64th as well."""
SECONDS = 10.0
"""Far more than the budget takes, even on a busy machine that measures coverage; far less than a hang."""


def scope(**given: int) -> Scope:
    values: dict[str, Any] = {
        "big": BIG,
        "long": LONG,
        "quotes": '"' * 64 * KIB,
        "json": "[" + "[]," * 20_000 + "[]]",
        "open": "[" * 100_000,
        "digits": "9" * 512 * KIB,
        "percent": "%%" * 10_000,
        "texts": [BIG] * 50,
        "rows": [{"a": {"b": {"c": 1}}}] * 10_000,
        "path": "a." * 400 + "a",
        "huge": 10**5000,
        "half": "\ud800",
    }
    return Scope({name: Labelled(value) for name, value in values.items()}, now=0.0, limits=Limits(**given))


HOSTILE = {
    "text doubled again and again": " + ".join(["big"] * 60),
    "text joined with itself": "join(split(big, ''), big)",
    "text split into characters again and again": "[" + ", ".join(["split(big, '')"] * 50) + "]",
    "many references to one text printed": "json([texts, texts, texts])",
    "many references to one text joined": "join(texts, '')",
    "lists of lists of lists": "json([" + ", ".join(["[long, long, long, long]"] * 30) + "])",
    "escapes of escapes": "json(json(json(json(json(json(json(quotes)))))))",
    "a list as text again and again": " + ".join(["long"] * 60),
    "a list searched again and again": " && ".join(["!includes(long, 'x')"] * 90),
    "text searched again and again": " && ".join(["!includes(big, 'y')"] * 90) + " && len(json(texts))",
    "a list sorted again and again": "long" + " | sort" * 90,
    "a list cut again and again": "[" + ", ".join(["long | slice(0)"] * 200) + "]",
    "objects picked again and again": " && ".join(["map(rows, 'a.b.c')"] * 60),
    "a wide indent": "JSON.stringify([" + "[" * 60 + "long" + "]" * 60 + "], null, 10)",
    "a pattern of dates": "date(0, " + " + ".join(["percent"] * 60) + ")",
    "JSON read again and again": "[" + ", ".join(["parse(json)"] * 40) + "]",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=list(HOSTILE))
def test_work_beyond_the_budget_is_refused_in_time_and_in_little_memory(source: str) -> None:
    expression = parse(source)
    place = scope(work=BUDGET)
    tracemalloc.start()
    begun = time.monotonic()
    try:
        with pytest.raises(ExpressionError, match="more work than an expression may"):
            expression.evaluate(place)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.monotonic() - begun < SECONDS
    assert peak < 64 * 1024 * KIB


HARMLESS = {
    "len(big)": 512 * KIB,
    "big.length": 512 * KIB,
    "big | slice(0, 3)": "xxx",
    "(big + big).length": 1024 * KIB,
    "sum(long)": 199_990_000,
    "long | last": 19_999,
    "len(map(rows, 'a.b.c'))": 10_000,
    "digits * 1": None,
    "digits | number": None,
    "len(parse(json))": 20_001,
}


@pytest.mark.parametrize(("source", "expected"), HARMLESS.items(), ids=list(HARMLESS))
def test_large_data_is_no_trouble_in_itself(source: str, expected: Any) -> None:
    assert parse(source).evaluate(scope()).value == expected


def test_a_whole_result_of_ten_mebibytes_fits_into_a_text() -> None:
    rows = [{"id": number, "text": "n" * 10_000} for number in range(1000)]
    found = compile_value("Rows: ${a}").evaluate(Scope({"a": Labelled(rows)}, now=0.0)).value
    assert len(found) > 9 * 1024 * KIB
    assert json.loads(found.removeprefix("Rows: ")) == rows


def test_the_budget_counts_for_a_value_as_a_whole() -> None:
    place = Scope({"a": Labelled("x" * 1000)}, now=0.0, limits=Limits(work=5000))
    assert len(compile_value(["<${a}>"] * 3).evaluate(place).value) == 3
    with pytest.raises(ExpressionError, match="more work") as caught:
        compile_value(["<${a}>"] * 6).evaluate(place)
    assert caught.value.source == "<${a}>"


def test_each_evaluation_has_a_budget_of_its_own() -> None:
    place = Scope({"a": Labelled("x" * 1000)}, now=0.0, limits=Limits(work=5000))
    compiled = compile_value("<${a}>")
    for _ in range(20):
        compiled.evaluate(place)


DEEP = {
    "brackets of lists": "[" * 3000 + "]" * 3000,
    "objects": "{a: " * 1500 + "1" + "}" * 1500,
    "negations": "!" * 5000 + "a",
    "ternaries": "a ? b : " * 1000 + "c",
    "sums": "1" + " + 1" * 2000,
    "choices": "a" + " || a" * 1500,
    "filters": "a" + " | trim" * 1000,
    "calls": "len(" * 1500 + "a" + ")" * 1500,
    "methods": "a" + ".trim()" * 1000,
    "indexes": "a[" * 3000 + "0" + "]" * 3000,
    "keys within keys": "[[" * 60 + "0" + "]]" * 60,
}


@pytest.mark.parametrize("source", DEEP.values(), ids=list(DEEP))
def test_an_expression_nested_too_deep_is_refused_when_it_is_parsed(source: str) -> None:
    with pytest.raises(ExpressionError, match="nested deeper than 100 levels") as caught:
        parse(source)
    assert 0 <= caught.value.offset < len(source)


def test_brackets_and_paths_do_not_count_as_depth() -> None:
    place = Scope({"a": Labelled({"b": 1})}, now=0.0)
    assert parse("(" * 1000 + "a.b" + ")" * 1000).evaluate(place).value == 1
    assert parse("a" + ".b" * 1000).evaluate(place).value is None
    assert parse("a" + "[0]" * 1000).evaluate(place).value is None


def test_an_expression_as_deep_as_it_may_be_can_be_evaluated_and_printed() -> None:
    for source in ("!" * 98 + "a", "a" + " + a" * 98, "[" * 98 + "a" + "]" * 98, "a" + " | string" * 98):
        expression = parse(source)
        expression.evaluate(Scope({"a": Labelled(1)}, now=0.0))
        assert parse(str(expression)) == expression


def test_an_expression_that_is_too_long_is_refused() -> None:
    with pytest.raises(ExpressionError, match="longer than 10000 characters"):
        parse("a" * 10_001)
    assert parse("a" * 10_000).references
    with pytest.raises(ExpressionError, match="longer than 10000 characters") as caught:
        compile_value("text ${" + "a" * 10_001 + "}")
    assert caught.value.offset == 7


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    "source", ["json(v)", "'' + v", "v == 1", "'${v}'", "v | string", "join([v])", "[v] | sort"]
)
@pytest.mark.parametrize(
    "value", [_nested(300), _nested(100_000), CYCLE, LOOP], ids=["deep", "deeper", "cycle", "loop"]
)
def test_data_that_is_nested_without_end_is_refused(value: Any, source: str) -> None:
    place = Scope({"v": Labelled(value)}, now=0.0)
    if value is LOOP and source in ("'' + v", "v == 1"):
        parse(source).evaluate(place)  # an object is `[object Object]` there, however deep
        return
    with pytest.raises(ExpressionError, match="nested deeper than 200 levels"):
        parse(source).evaluate(place)


def test_data_that_is_nested_without_end_may_be_passed_on() -> None:
    place = Scope({"v": Labelled(CYCLE), "w": Labelled(LOOP)}, now=0.0)
    assert parse("v[0][0][0]").evaluate(place).value is CYCLE
    assert parse("w.self.self").evaluate(place).value is LOOP
    assert parse("[v.length, !w, v === v[0], type(w)]").evaluate(place).value == [1, False, True, "object"]


def test_a_number_with_too_many_digits_cannot_be_printed_but_compared() -> None:
    assert parse("[huge > 1, huge + 1, huge * 1, -huge]").evaluate(scope()).value == [True, None, None, None]
    for source in (
        "'${huge}'",
        "'' + huge",
        "json(huge)",
        "json([huge])",
        "json([huge, half])",
        "huge | string",
        "includes('1', huge)",
    ):
        with pytest.raises(ExpressionError, match="too many digits"):
            parse(source).evaluate(scope())


def test_an_expression_ends_well_where_the_stack_is_nearly_used_up() -> None:
    place = Scope({"a": Labelled(1)}, now=0.0)
    source = "!" * 98 + "a"
    for evaluate in (parse(source).evaluate, compile_value(f"${{{source}}}").evaluate):
        room = sys.getrecursionlimit() - len(inspect.stack()) - 60
        with pytest.raises(ExpressionError, match="nested too deeply"):
            _below(room, evaluate, place)


def _below(frames: int, evaluate: Callable[[Scope], object], place: Scope) -> object:
    return evaluate(place) if frames <= 0 else _below(frames - 1, evaluate, place)


def test_json_that_is_nested_without_end_is_not_json() -> None:
    with pytest.raises(ExpressionError, match="This text is not JSON"):
        parse("parse(open)").evaluate(scope())


def test_a_path_of_too_many_steps_is_refused() -> None:
    with pytest.raises(ExpressionError, match="The path is not one that can be followed"):
        parse("map(rows, path)").evaluate(scope())
    with pytest.raises(ExpressionError, match="longer than 1000 characters"):
        parse("map(rows, path + path)").evaluate(scope())


def test_halves_of_characters_are_printed_as_they_are() -> None:
    place = Scope({"v": Labelled({"t": "\ud800x", "n": [1e21, 2.0, 1e-7]})}, now=0.0)
    assert parse("json(v)").evaluate(place).value == '{"t":"\ud800x","n":[1e+21,2,1e-07]}'
    assert parse("JSON.stringify(v.t, null, 2)").evaluate(place).value == '"\ud800x"'
    assert parse("v.t | uppercase").evaluate(place).value == "\ud800X"


def test_a_lone_member_takes_a_few_microseconds() -> None:
    compiled = compile_value("${a.output.x}")
    place = Scope({"a": Labelled({"output": {"x": 1}})}, now=0.0)
    best = float("inf")
    for _ in range(20):
        begun = time.perf_counter()
        for _ in range(1000):
            compiled.evaluate(place)
        best = min(best, time.perf_counter() - begun)
    assert best / 1000 < 200e-6  # two of these on a quiet machine; the rest is for busy ones and for coverage
