"""`transform` steps: values, merges, and the pipeline stage by stage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import StepError
from luthier.spec import Sort, TransformConfig
from luthier.taint import TRUSTED, UNTRUSTED, Label, Labelled
from luthier.tools import Reply
from luthier.workflows.operations.pipeline import reshaped
from luthier.workflows.operations.tables import formatted, parsed
from tests.workflows.house import Gate, House

ROWS = [
    {"id": 1, "name": " Ann ", "active": True, "note": None},
    {"id": 2, "name": "bob", "active": False},
    {"id": 1, "name": "Cy", "active": True},
]


def shaped(value: Any, *, defaults: dict[str, Any] | None = None, **config: Any) -> Any:
    return reshaped(value, TransformConfig(**config), defaults or {})


async def run_config(config: str, inputs: Any = None, gate: Gate | None = None) -> Any:
    text = f"ensemble: t\nagents:\n  - {{name: a, operation: transform, config: {config}}}\n"
    run = await House(gate).run(text, inputs)
    return run.error["message"] if run.error is not None else run.output


class TestValue:
    @pytest.mark.parametrize(
        ("config", "output"),
        [
            ("{value: 1}", 1),
            ("{value: {a: ['${input.x}', 'x is ${input.x}']}}", {"a": [5, "x is 5"]}),
            ("{value: '${input.missing}'}", None),
            ("{value: false}", False),
        ],
    )
    async def test_it_is_what_is_written_there(self, config: str, output: Any) -> None:
        assert await run_config(config, {"x": 5}) == output

    async def test_a_tool_s_result_becomes_its_content(self) -> None:
        text = """
        ensemble: t
        agents:
          - {name: one, operation: tools, config: {mcp: s, tool: one}}
          - {name: a, operation: transform, config: {value: "${one.output}"}}
        """
        run = await House(Gate({"s/one": Reply(structured={"n": 1})})).run(text)
        assert run.steps["a"].output == {"n": 1}
        assert type(run.steps["a"].output) is dict

    async def test_each_part_keeps_its_label(self) -> None:
        given = Labelled({"bad": 1, "good": 2}, parts={"/bad": UNTRUSTED})
        text = """
        ensemble: t
        agents:
          - {name: a, operation: transform, config: {value: {x: "${input.bad}", y: "${input.good}"}}}
        outputs: {y: "${a.output.y}"}
        """
        run = await House().run(text, given)
        assert run.label == TRUSTED
        assert run.steps["a"].label == UNTRUSTED


class TestMerge:
    @pytest.mark.parametrize(
        ("items", "output"),
        [
            ([{"a": 1, "b": 1}, {"b": 2}], {"a": 1, "b": 2}),
            ([[1, [2]], [], [3]], [1, [2], 3]),
            ([None, {"a": 1}, None], {"a": 1}),
            ([None, [1]], [1]),
            ([None, None], None),
            ([1, 2], "merge takes only lists or only mappings, not a number"),
            ([[1], {"a": 1}], "merge takes only lists or only mappings, not a list and a mapping"),
            ([True], "merge takes only lists or only mappings, not true or false"),
            ("text", "merge takes a list of values, not text"),
            (None, "merge takes a list of values, not null"),
        ],
    )
    async def test_lists_are_joined_and_of_mappings_the_later_wins(self, items: Any, output: Any) -> None:
        assert await run_config("{merge: '${input.items}'}", {"items": items}) == output

    async def test_what_comes_from_each_keeps_its_label(self) -> None:
        given = Labelled({"x": {"a": 1}, "y": {"b": 2}}, parts={"/y/b": UNTRUSTED})
        text = """
        ensemble: t
        agents:
          - {name: a, operation: transform, config: {merge: ["${input.x}", "${input.y}"]}}
        outputs: {a: "${a.output.a}"}
        """
        run = await House().run(text, given)
        assert run.output == {"a": 1}
        assert run.label == TRUSTED
        assert run.steps["a"].label == UNTRUSTED


class TestPipeline:
    async def test_the_input_and_the_defaults_may_be_expressions(self) -> None:
        config = "{input: '${input.rows}', defaults: {by: '${input.by}'}, pick: [id, by]}"
        assert await run_config(config, {"rows": [{"id": 1}], "by": "me"}) == [{"id": 1, "by": "me"}]

    async def test_the_result_carries_the_label_of_all_that_went_in(self) -> None:
        given = Labelled({"rows": [1], "by": 2}, parts={"/by": UNTRUSTED})
        text = """
        ensemble: t
        agents:
          - {name: a, operation: transform, config: {input: "${input.rows}", defaults: {by: "${input.by}"}}}
        """
        assert (await House().run(text, given)).label == UNTRUSTED

    @pytest.mark.parametrize(
        ("config", "output"),
        [
            ({}, ROWS),
            ({"filter": "active"}, [ROWS[0], ROWS[2]]),
            ({"filter": "nothing"}, []),
            ({"pick": ("name", "absent")}, [{"name": " Ann "}, {"name": "bob"}, {"name": "Cy"}]),
            ({"omit": ("name", "active", "note")}, [{"id": 1}, {"id": 2}, {"id": 1}]),
            ({"trim": True, "pick": ("name",)}, [{"name": "Ann"}, {"name": "bob"}, {"name": "Cy"}]),
            (
                {"compact": True, "omit": ("id", "name")},
                [{"active": True}, {"active": False}, {"active": True}],
            ),
            ({"rename": {"id": "key"}, "pick": ("key",)}, [{"key": 1}, {"key": 2}, {"key": 1}]),
            ({"dedupe": "id", "pick": ("id",)}, [{"id": 1}, {"id": 2}]),
            ({"dedupe": True, "pick": ("id",)}, [{"id": 1}, {"id": 2}]),
            ({"sort": Sort(by="id", descending=True), "pick": ("id",)}, [{"id": 2}, {"id": 1}, {"id": 1}]),
            ({"offset": 1, "limit": 1}, [ROWS[1]]),
            ({"offset": 5}, []),
            ({"limit": 2}, ROWS[:2]),
        ],
    )
    def test_each_stage(self, config: dict[str, Any], output: Any) -> None:
        before = [dict(row) for row in ROWS]
        assert shaped(ROWS, **config) == output
        assert before == ROWS, "what went in is not changed"

    def test_defaults_fill_what_is_missing_and_not_what_is_null(self) -> None:
        assert shaped([{"a": None}, {}], defaults={"a": 1}) == [{"a": None}, {"a": 1}]
        assert shaped([{"a": None}], compact=True, defaults={"a": 1}) == [{"a": 1}]

    def test_the_stages_come_in_the_fixed_order(self) -> None:
        config: dict[str, Any] = {
            "filter": "Ok",
            "trim": True,
            "coerce": {"n": "number"},
            "rename": {"n": "number"},
            "pick": ("number",),
            "sort": Sort(by="number"),
            "limit": 2,
            "format": "csv",
            "parse": "csv",
        }
        text = "n,Ok\n 3 ,true\n1,false\n 2 ,true\n 2 ,true\n"
        assert shaped(text, **config, dedupe=True) == "number\r\n2\r\n3"

    def test_one_mapping_gets_the_stages_of_its_fields(self) -> None:
        assert shaped({"a": " x ", "b": None}, trim=True, compact=True, rename={"a": "c"}) == {"c": "x"}
        assert shaped({"a": 1}, format="jsonl") == '{"a":1}'

    @pytest.mark.parametrize("value", [None, 1, "text", True])
    def test_what_is_neither_rows_nor_a_mapping_goes_through(self, value: Any) -> None:
        assert shaped(value, trim=True, pick=("a",), sort=Sort(by="a")) == value

    def test_rows_that_are_no_mappings_go_through_but_have_no_fields(self) -> None:
        assert shaped([2, " a ", None, [1]], trim=True, compact=True) == [2, "a", [1]]
        assert shaped([2, {"a": 1}], filter="a") == [{"a": 1}]
        assert shaped([2, {"a": 1}, 2], dedupe="a") == [2, {"a": 1}]
        assert shaped([2, {"a": 1}], sort=Sort(by="a")) == [{"a": 1}, 2]

    @pytest.mark.parametrize(
        ("to", "value", "output"),
        [
            ("string", 1.0, "1"),
            ("string", True, "true"),
            ("string", [1, "a"], '[1,"a"]'),
            ("string", "x", "x"),
            ("number", " 12 ", 12),
            ("number", "1.50", 1.5),
            ("number", "x", None),
            ("number", "", None),
            ("number", True, 1),
            ("number", 3, 3),
            ("number", [1], None),
            ("boolean", "TRUE", True),
            ("boolean", "yes", True),
            ("boolean", "1", True),
            ("boolean", "no", False),
            ("boolean", 0, False),
            ("boolean", [], True),
            ("date", "2026-01-02", "2026-01-02T00:00:00.000Z"),
            ("date", "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"),
            ("date", 1_000_000_000_123, "2001-09-09T01:46:40.123Z"),
            ("date", "yesterday", None),
            ("date", 1e300, None),
            ("date", True, None),
            ("date", [], None),
            ("string", None, None),
        ],
    )
    def test_coercion(self, to: Any, value: Any, output: Any) -> None:
        result = shaped({"a": value, "b": value}, coerce={"a": to})
        assert result == {"a": output, "b": value}
        assert type(result["a"]) is type(output)

    @pytest.mark.parametrize("descending", [False, True])
    def test_sorting_is_stable_and_those_without_the_field_come_last(self, *, descending: bool) -> None:
        values = ["b", None, 10, "A", 9, "a", True]
        rows = [{"v": value, "n": number} for number, value in enumerate(values)]
        rows.append({"n": 99})
        sorted_rows = shaped(rows, sort=Sort(by="v", descending=descending))
        ordered = [True, 9, 10, "a", "A", "b"]
        assert [row.get("v") for row in sorted_rows[:-2]] == (ordered[::-1] if descending else ordered)
        assert [row["n"] for row in sorted_rows[-2:]] == [1, 99]

    def test_equal_rows_are_alike_whatever_the_order_of_their_keys(self) -> None:
        rows = [{"a": 1, "b": [{"c": None}]}, {"b": [{"c": None}], "a": 1.0}, {"a": True, "b": [{"c": None}]}]
        assert shaped(rows, dedupe=True) == [rows[0], rows[2]]
        assert shaped(["1", 1], dedupe=True) == ["1", 1]


class TestTables:
    def test_cells_are_numbers_and_booleans_only_where_they_would_be_written_so(self) -> None:
        text = "a,b,c,d,e,f,g,h\n1,-2.5,007,1e3,true,,no,-0\n"
        assert parsed(text, "csv") == [
            {"a": 1, "b": -2.5, "c": "007", "d": "1e3", "e": True, "f": None, "g": "no", "h": "-0"}
        ]

    @pytest.mark.parametrize("text", ["", "\n\n", "a,b\n", "\ufeffa,b"])
    def test_no_rows_are_an_empty_list(self, text: str) -> None:
        assert parsed(text, "csv") == []

    def test_quotes_blank_lines_and_a_byte_order_mark(self) -> None:
        text = '\ufeff"a","b"\r\n"x, ""y""\nz",2\r\n\r\n'
        assert parsed(text, "csv") == [{"a": 'x, "y"\nz', "b": 2}]

    def test_tabs(self) -> None:
        assert parsed("a\tb\n1\tx,y", "tsv") == [{"a": 1, "b": "x,y"}]
        assert formatted([{"a": 1, "b": "x,y"}], "tsv") == "a\tb\r\n1\tx,y"

    @pytest.mark.parametrize(
        ("text", "form", "message"),
        [
            ("a,b\n1,2\n3", "csv", "csv row 2 has 1 cells, the header has 2"),
            ("a,b\n1,2,3", "csv", "csv row 1 has 3 cells, the header has 2"),
            ('a\n"x', "csv", "this is not csv: line 2"),
            ("{}\n\nnope", "jsonl", "line 3 is not JSON"),
            (5, "csv", "csv is read from text, not from a number"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, text: Any, form: str, message: str) -> None:
        with pytest.raises(StepError, match=message):
            parsed(text, form)

    def test_the_columns_are_those_asked_for_else_all_in_the_order_they_come(self) -> None:
        rows = [{"a": 1}, {"b": "x,y", "a": None}]
        assert formatted(rows, "csv") == 'a,b\r\n1,\r\n,"x,y"'
        assert formatted(rows, "csv", ("b", "c")) == 'b,c\r\n,\r\n"x,y",'

    def test_values_are_written_as_expressions_print_them(self) -> None:
        assert (
            formatted([{"a": 42.0, "b": True, "c": {"d": [1]}}], "tsv")
            == 'a\tb\tc\r\n42\ttrue\t"{""d"":[1]}"'
        )

    @pytest.mark.parametrize("rows", [[], [{}]])
    def test_nothing_is_written_as_nothing(self, rows: Any) -> None:
        assert formatted(rows, "csv") == ""

    def test_rows_of_csv_must_be_mappings(self) -> None:
        with pytest.raises(StepError, match="row 2 is a number"):
            formatted([{}, 1], "csv")

    @given(
        st.lists(
            st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.booleans()), max_size=5
        )
    )
    def test_json_lines_come_back_as_they_were(self, rows: list[dict[str, Any]]) -> None:
        assert parsed(formatted(rows, "jsonl"), "jsonl") == rows

    @given(
        st.lists(
            st.fixed_dictionaries(
                {"n": st.integers(-(10**14), 10**14), "t": st.text("abc ,\"\n'\té", min_size=1)}
            ),
            min_size=1,
        )
    )
    def test_csv_comes_back_as_it_was(self, rows: list[dict[str, Any]]) -> None:
        assert parsed(formatted(rows, "csv"), "csv") == rows


async def test_a_transform_made_by_hand_without_a_source_says_so() -> None:
    from luthier.spec import Ensemble, Step

    step = Step(name="a", operation="transform", config=TransformConfig())
    run = await House().run(Ensemble(name="t", steps=(step,)))
    assert run.error is not None
    assert "one of value, merge and input" in run.error["message"]


def test_labels_are_not_lost_by_a_null_that_was_left_out() -> None:
    from luthier.workflows.operations.transform import merged

    label = Label(UNTRUSTED.integrity)
    out = merged(Labelled([None, {"a": 1}], parts={"/0": label}))
    assert out.whole == label


@pytest.mark.parametrize("items", [[[1, 2], [3]], [{"a": 1}, {"b": 2}]])
def test_where_an_item_stands_tells_of_the_containers_beside_it(items: list[Any]) -> None:
    from luthier.workflows.operations.transform import merged

    out = merged(Labelled(items, parts={"/0": UNTRUSTED}))
    assert out.label == UNTRUSTED
    assert all(out.at(pointer) == UNTRUSTED for pointer in ("/2", "/b", "/none"))
