"""The state that the steps of a run share: reading, setting, types, labels, isolation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SpecError, StepError
from luthier.taint import TRUSTED, UNTRUSTED, Labelled, merge
from luthier.workflows import Run, decode, encode_all
from luthier.workflows.machine import fold
from luthier.workflows.plan import plan
from tests.workflows.house import Gate, House, read

if TYPE_CHECKING:
    from pathlib import Path

COUNT = """
ensemble: t
inputs: {bad: 1}
state: {schema: {count: number, last: string}, initial: {count: 0}}
agents:
  - name: a
    operation: transform
    config: {value: "${item}"}
    state: {set: {count: "${state.count + a.output}"}}
flow: [{foreach: {items: [1, 2, 3, 4], step: a}}]
outputs: {count: "${state.count}", last: "${state.last}"}
"""


async def test_steps_set_fields_and_the_outputs_read_them() -> None:
    run = await House().run(COUNT)
    assert run.output == {"count": 10, "last": None}


async def test_each_run_has_a_state_of_its_own() -> None:
    house = House()
    await house.run(COUNT)
    assert (await house.run(COUNT)).output["count"] == 10


async def test_items_that_run_side_by_side_lose_nothing() -> None:
    gate = asyncio.Barrier(4)

    async def meet(arguments: dict[str, Any]) -> int:
        await gate.wait()
        return int(arguments["n"])

    text = COUNT.replace(
        'operation: transform\n    config: {value: "${item}"}',
        'operation: tools\n    config: {mcp: s, tool: one}\n    input: {n: "${item}"}',
    )
    run = await House(Gate({"s/one": meet})).run(text)
    assert run.output["count"] == 10


async def test_the_record_folds_to_the_same_state() -> None:
    run = await House().run(COUNT)
    state = fold(plan(read(COUNT)), decode(encode_all(run.record)))
    assert state.values["count"].value == 10


async def test_a_step_that_failed_or_was_skipped_sets_nothing() -> None:
    text = COUNT.replace("state: {set", 'condition: "${item > 2}"\n    state: {set')
    assert (await House().run(text)).output["count"] == 7


async def test_a_value_of_the_wrong_type_fails_the_step() -> None:
    run = await House().run(COUNT.replace("${state.count + a.output}", "x"))
    assert run.error is not None
    assert run.error["message"] == "state.count must be a number, not text"


async def test_a_value_that_cannot_be_made_fails_the_step() -> None:
    run = await House().run(COUNT.replace("${state.count + a.output}", "${input.bad.trim()}"), {"bad": [1]})
    assert run.error is not None
    assert run.error["step"] == "foreach_0[0].a"


async def test_what_it_begins_with_may_name_inputs_and_has_its_type() -> None:
    text = COUNT.replace("initial: {count: 0}", "initial: {count: '${input.bad}'}")
    assert (await House().run(text, {"bad": 5})).output["count"] == 15
    with pytest.raises(StepError, match="must be a number, not text"):
        await House().run(text, {"bad": "x"})


async def test_fields_carry_the_labels_of_what_was_set() -> None:
    given = merge({"bad": Labelled(1, UNTRUSTED)})
    text = COUNT.replace("${state.count + a.output}", "${input.bad}")
    run = await House().run(text.replace("foreach: {items", "foreach: {maxConcurrency: 1, items"), given)
    assert (run.labelled.at("/count"), run.labelled.at("/last")) == (UNTRUSTED, TRUSTED)


async def test_what_is_set_under_a_decision_is_marked_by_it() -> None:
    given = merge({"bad": Labelled(1, UNTRUSTED)})
    text = COUNT.replace(
        'state: {set: {count: "${state.count + a.output}"}',
        "condition: input.bad == 1\n    state: {set: {count: 5}",
    )
    assert (await House().run(text, given)).labelled.at("/count") == UNTRUSTED


async def test_a_result_that_is_kept_keeps_the_state_that_it_shows() -> None:
    house, text = House(), COUNT.replace("ensemble: t", "ensemble: t\ncache: {ttl: 60}")
    await house.run(text)
    again = await house.run(text)
    assert (again.cached, again.output["count"]) == (True, 10)


class TestScripts:
    TEXT = """
ensemble: t
inputs: {bad: 1}
state: {initial: {count: "${input.bad}", other: 2, third: 3}}
agents:
  - name: a
    operation: code
    config: {script: scripts/a}
    input: {}
    state: {use: [count], set: [count, third]}
outputs: {state: "${state}", a: "${a.output}"}
"""

    async def run(self, folder: Path, body: str, given: Any = None) -> Run:
        (folder / "scripts").mkdir()
        (folder / "scripts" / "a.py").write_text(f"def run(context):\n    {body}\n")
        return await House(root=folder).run(self.TEXT, given)

    async def test_they_see_what_they_use_and_set_what_they_list(self, tmp_path: Path, caplog: Any) -> None:
        body = (
            "context.set_state({'count': context.state['count'] + 1, 'other': 9}); "
            "return sorted(context.state)"
        )
        run = await self.run(tmp_path, body)
        assert run.output == {"state": {"count": 2, "other": 2, "third": 3}, "a": ["count"]}
        assert "set the field other, which it does not list" in caplog.text

    async def test_what_they_see_marks_what_they_make_and_set(self, tmp_path: Path) -> None:
        given = merge({"bad": Labelled(1, UNTRUSTED)})
        run = await self.run(tmp_path, "context.set_state({'third': 1})", given)
        assert run.labelled.at("/a") == UNTRUSTED
        assert run.labelled.at("/state/third") == UNTRUSTED
        assert run.labelled.at("/state/other") == TRUSTED

    async def test_a_failure_sets_nothing(self, tmp_path: Path) -> None:
        run = await self.run(tmp_path, "context.set_state({'third': 1}); raise ValueError")
        assert not run.success


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "state: {schema: {count: number, last: string}, initial: {count: 0}}\n",
            "",
            "the ensemble has no `state`",
        ),
        ("set: {count", "set: {coun", "the state has no field `coun`"),
        ("count: number", "count: numbr", "must be one of string"),
        ("count: 0", "count: x", "must be a number, not text"),
        ("initial: {count: 0}", "initial: 5", "must be a mapping"),
        ("count: 0", "count: '${a.output}'", "before any step runs"),
        ("set: {", "use: [zz], set: {", "the state has no field `zz`"),
        (
            'state: {set: {count: "${state.count + a.output}"}}',
            "state: {set: 5}",
            "a mapping, or a list of fields",
        ),
        ('state: {set: {count: "${state.count + a.output}"}}', "state: {set: [zz]}", "no field `zz`"),
    ],
)
def test_what_is_written_wrong_is_told(old: str, new: str, message: str) -> None:
    assert old in COUNT
    with pytest.raises(SpecError, match=message):
        read(COUNT.replace(old, new))
