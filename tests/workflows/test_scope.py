"""The live view of a run that expressions are given."""

from __future__ import annotations

import pytest

from luthier.expr import compile_value
from luthier.spec.members import RUN, STATUS
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Labelled
from luthier.workflows.machine import State
from luthier.workflows.plan import arrange
from luthier.workflows.run import StepStatus, status_of
from luthier.workflows.scope import RunScope, fixed_names, label_named
from tests.workflows.house import House
from tests.workflows.playing import Table, node, ok, table


def scope(run: Table) -> RunScope:
    names = fixed_names(Labelled({"x": 1}), {"id": "r"}, {"A": "a", "B": "b"}, ("A",))
    return RunScope(names, run.state)


def test_it_knows_its_names() -> None:
    view = scope(table(node("a"), node("b")))
    assert list(view) == ["input", "state", "run", "env", "a", "b"]
    assert len(view) == 6
    assert "a" in view
    assert "c" not in view
    with pytest.raises(KeyError):
        view["c"]


def test_a_step_that_has_not_ended_has_done_nothing() -> None:
    run = table(node("a"))
    view = scope(run)
    assert not any(view["a"].value.values())
    run.start("a")
    assert {name for name, value in view["a"].value.items() if value} == {"attempted", "attempts"}


def test_one_that_has_is_seen_at_once_and_stays() -> None:
    run = table(node("a"))
    view = scope(run)
    assert not view["a"].value["output"]
    run.run("a", ok(7, UNTRUSTED))
    assert view["a"].value["output"] == 7
    assert view["a"] is view["a"]
    assert view["a"].label == UNTRUSTED


def test_the_parts_of_an_output_keep_their_labels() -> None:
    run = table(node("a"))
    run.start("a")
    outcome = ok()
    run.settle("a", type(outcome)(output=Labelled({"x": 1, "y": 2}, TRUSTED, {"/x": UNTRUSTED})))
    found = scope(run)["a"]
    assert found.at("/success") == UNTRUSTED
    assert found.at("/output/x") == UNTRUSTED
    assert found.at("/output/y") == TRUSTED


def test_exposed_names_of_the_environment_are_secret_and_others_are_not_there() -> None:
    env = scope(table())["env"]
    assert env.value == {"A": "a"}
    assert env.at("/A") == SECRET
    assert env.at("/B") == TRUSTED


def test_the_label_of_what_cannot_be_evaluated_is_that_of_all_it_names() -> None:
    run = table(node("a"))
    run.run("a", ok(7, UNTRUSTED))
    view = scope(run)
    assert label_named(compile_value("${input.x} ${a.output}"), view) == UNTRUSTED
    assert label_named(compile_value("${input.x} ${nobody}"), view) == TRUSTED


def test_the_members_that_are_checked_are_those_that_there_are() -> None:
    assert tuple(sorted(StepStatus().view())) == tuple(sorted(STATUS))


async def test_so_are_those_of_run() -> None:
    text = "agents: [{name: a, operation: transform, config: {value: '${keys(run)}'}}]\nensemble: t\n"
    assert sorted((await House().run(text)).output) == sorted(RUN)


def test_a_status_before_the_run_began_is_empty() -> None:
    state = State(arrange([node("a")]))
    assert state.nodes == {}
    status = status_of(table(node("a")).state.nodes["a"])
    assert status.to_json() == {
        "output": None,
        "success": False,
        "failed": False,
        "executed": False,
        "attempted": False,
        "skipped": False,
        "error": None,
        "duration": 0.0,
        "attempts": 0,
        "retry_count": 0,
        "cached": False,
        "score": None,
        "label": TRUSTED.to_json(),
    }
