"""The machine as tables: a plan, what becomes of its steps, and what is to be done then."""

from __future__ import annotations

import pytest

from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.workflows.machine import Cancel, End, Finish, Judge, Start, fold
from luthier.workflows.plan import arrange
from luthier.workflows.record import Entry, RunStarted
from tests.workflows.playing import (
    Table,
    cancelled,
    failed,
    folded_again,
    group,
    node,
    ok,
    retry,
    snapshot,
    table,
)


def test_steps_that_need_nothing_start_at_once() -> None:
    assert table(node("a"), node("b"), node("c", "a b")).commands() == (Start("a"), Start("b"))


def test_a_step_starts_when_all_it_needs_has_ended() -> None:
    run = table(node("a"), node("b"), node("c", "a b"))
    run.run("a", ok())
    assert run.starting == ["b"]
    run.run("b", ok())
    assert run.starting == ["c"]


def test_the_run_finishes_when_every_step_has_ended() -> None:
    run = table(node("a"))
    run.run("a", ok())
    assert run.commands() == (Finish(),)
    run.finish()
    assert run.commands() == ()


def test_a_plan_without_steps_finishes_at_once() -> None:
    assert table().commands() == (Finish(),)


def test_a_command_stands_until_it_is_answered() -> None:
    run = table(node("a"))
    assert run.commands() == run.commands() == (Start("a"),)
    run.start("a")
    assert run.commands() == ()


class TestConditions:
    def test_a_condition_is_read_before_the_step_starts(self) -> None:
        run = table(node("a", conditional=True))
        assert run.commands() == (Judge("a"),)
        run.judge("a", taken=True)
        assert run.commands() == (Start("a"),)

    def test_a_step_skipped_by_its_condition_counts_as_null_and_its_dependents_run(self) -> None:
        run = table(node("a", conditional=True), node("b", "a"))
        run.judge("a", taken=False)
        run.end()
        assert run.end_of("a") == "skipped"
        assert run.error_of("a") == ""
        assert run.starting == ["b"]

    def test_a_condition_that_cannot_be_read_fails_the_step_without_starting_it(self) -> None:
        run = table(node("a", conditional=True))
        run.settle("a", failed("condition"))
        assert run.state.nodes["a"].attempt == 0
        assert run.finish().step == "a"

    def test_the_condition_comes_after_the_dependencies(self) -> None:
        run = table(node("a"), node("b", "a", conditional=True))
        assert run.commands() == (Start("a"),)
        run.run("a", failed())
        assert run.end_of("b") == "blocked"


class TestFailures:
    def test_a_failure_that_nobody_looks_at_fails_the_run(self) -> None:
        run = table(node("a"))
        run.run("a", failed())
        finish = run.finish()
        assert finish.step == "a"
        assert finish.error is not None
        assert finish.error.kind == "code"

    def test_a_failure_that_a_step_looks_at_does_not(self) -> None:
        run = table(node("a"), node("b", "a?", conditional=True))
        run.run("a", failed())
        run.judge("b", taken=True)
        run.run("b", ok())
        assert run.finish() == Finish()

    def test_a_failure_that_the_outputs_look_at_does_not(self) -> None:
        run = table(node("a"), looked_at=["a"])
        run.run("a", failed())
        assert run.finish() == Finish()

    def test_a_step_that_needs_a_failed_one_is_skipped_with_the_reason(self) -> None:
        run = table(node("a"), node("b", "a"), looked_at=["a"])
        run.run("a", failed())
        assert run.end_of("b") == "blocked"
        assert run.error_of("b") == "dependency a failed"

    def test_what_needs_a_skipped_dependent_is_skipped_too_and_names_the_failure(self) -> None:
        run = table(node("a"), node("b", "a"), node("c", "b"), looked_at=["a"])
        run.run("a", failed())
        assert run.error_of("c") == "dependency b did not run, because a failed"

    def test_a_step_that_looks_at_a_skipped_dependent_runs(self) -> None:
        run = table(node("a"), node("b", "a"), node("c", "b?"), looked_at=["a"])
        run.run("a", failed())
        assert run.starting == ["c"]

    def test_a_looker_that_is_itself_skipped_does_not_absolve(self) -> None:
        run = table(node("a"), node("b"), node("c", "a? b"), looked_at=["b"])
        run.run("a", failed())
        assert run.commands() == (Start("b"),)
        run.run("b", failed())
        assert run.end_of("c") == "blocked"
        assert run.finish().step == "a"

    def test_a_looker_that_was_skipped_before_the_failure_does_not_absolve_either(self) -> None:
        run = table(
            node("a"), node("b"), node("x", "a"), node("c", "x? b"), node("late"), looked_at=["b", "a"]
        )
        run.run("b", failed())
        run.run("a", ok())
        run.start("x", "late")
        run.settle("x", failed())
        run.end()
        assert run.end_of("c") == "blocked"
        run.settle("late", ok())
        assert run.finish().step == "x"

    def test_a_looker_skipped_by_its_own_condition_has_looked(self) -> None:
        run = table(node("a"), node("b", "a?", conditional=True))
        run.run("a", failed())
        run.judge("b", taken=False)
        run.end()
        assert run.finish() == Finish()

    def test_after_such_a_failure_no_new_step_starts_and_running_ones_finish(self) -> None:
        run = table(node("a"), node("b"), node("c", "b"), node("d"))
        run.start("a", "b")
        run.settle("a", failed())
        assert run.starting == []
        run.end()
        assert run.end_of("d") == "blocked"
        assert run.error_of("d") == "not started, because a failed"
        assert run.end_of("b") == ""
        run.settle("b", ok())
        run.end()
        assert run.end_of("b") == "ok"
        assert run.end_of("c") == "blocked"
        assert run.finish().step == "a"

    def test_a_condition_that_was_about_to_be_read_is_not(self) -> None:
        run = table(node("a"), node("b", conditional=True))
        run.run("a", failed())
        assert run.end_of("b") == "blocked"

    def test_the_first_of_several_failures_is_the_run_s(self) -> None:
        run = table(node("a"), node("b"))
        run.start("a", "b")
        run.settle("b", failed("connect"))
        run.settle("a", failed())
        assert run.finish().step == "b"

    def test_a_failure_before_it_in_the_flow_does_not_matter_to_a_step_that_does_not_name_it(self) -> None:
        run = table(node("a"), node("b", after=("a",)), looked_at=["a"])
        run.run("a", failed())
        assert run.starting == ["b"]


class TestRetries:
    def test_a_connection_that_failed_is_tried_again_after_the_wait(self) -> None:
        run = table(node("a", retry=retry(initial_delay=2.0)))
        run.start("a")
        run.settle("a", failed("connect"))
        last = run.entries[-1]
        assert run.commands() == (Start("a", 2, last.at + 2.0),)
        run.run("a", ok())
        assert run.end_of("a") == "ok"
        assert run.state.nodes["a"].attempt == 2

    def test_the_last_attempt_s_failure_is_the_step_s(self) -> None:
        run = table(node("a", retry=retry(2)))
        run.run("a", failed("connect"))
        run.run("a", failed("connect"))
        assert run.end_of("a") == "failed"
        assert run.finish().step == "a"

    def test_dependents_wait_for_the_last_attempt(self) -> None:
        run = table(node("a", retry=retry(2)), node("b", "a"))
        run.run("a", failed("connect"))
        assert run.starting == ["a"]
        run.run("a", ok())
        assert run.starting == ["b"]

    def test_a_step_between_attempts_ends_with_its_last_failure_when_another_fails_the_run(self) -> None:
        run = table(node("a", retry=retry()), node("b"))
        run.run("a", failed("connect"))
        run.run("b", failed())
        assert run.end_of("a") == "failed"
        assert run.error_of("a") == "connect happened"
        assert run.finish().step == "b"

    def test_no_attempt_is_announced_once_the_run_has_failed(self) -> None:
        run = table(node("a", retry=retry()), node("b"))
        run.start("a", "b")
        run.settle("b", failed())
        run.settle("a", failed("connect"))
        assert run.end_of("a") == "failed"


class TestParallel:
    def flow(self, wait_for: str, *, looked_at: list[str] | None = None, after: str = "") -> Table:
        return table(
            group("g", "a b", wait_for),
            node("a", parent="g"),
            node("b", parent="g"),
            node("c", after, after=("g",)),
            looked_at=looked_at or [],
        )

    def test_the_members_start_with_their_group(self) -> None:
        run = self.flow("all")
        assert run.starting == ["g"]
        run.start("g")
        assert run.starting == ["a", "b"]

    def test_all_yields_the_outputs_in_written_order(self) -> None:
        run = self.flow("all")
        run.start("g", "a", "b")
        run.settle("b", ok("B", UNTRUSTED))
        assert "g" not in run.state.agenda
        run.settle("a", ok("A"))
        run.end()
        ended = run.state.nodes["g"].ended
        assert ended is not None
        assert ended.output == Labelled(["A", "B"], parts={"/1": UNTRUSTED})
        assert ended.label == UNTRUSTED
        assert run.starting == ["c"]

    def test_all_fails_with_the_first_member_that_failed(self) -> None:
        run = self.flow("all", looked_at=["a"])
        run.start("g")
        run.run("a", failed())
        run.run("b", ok())
        assert run.end_of("g") == "failed"
        assert run.error_of("g") == "a: code happened"
        assert run.starting == ["c"]

    def test_looking_at_a_group_is_looking_at_its_members(self) -> None:
        run = self.flow("all", after="g?")
        run.start("g")
        run.run("a", failed())
        run.run("b", ok())
        run.run("c", ok())
        assert run.finish() == Finish()

    def test_a_member_s_failure_that_nobody_looks_at_fails_the_run(self) -> None:
        run = self.flow("all")
        run.start("g", "b")
        run.run("a", failed())
        run.settle("b", ok())
        run.end()
        assert run.end_of("c") == "blocked"
        assert run.finish().step == "a"

    def test_first_takes_the_first_success_and_calls_the_others_off(self) -> None:
        run = self.flow("first")
        run.start("g", "a", "b")
        run.settle("a", ok("A"))
        assert run.commands() == (Cancel("b"),)
        run.settle("b", cancelled())
        run.end()
        assert run.end_of("b") == "cancelled"
        ended = run.state.nodes["g"].ended
        assert ended is not None
        assert ended.output == Labelled(["A"])
        assert run.starting == ["c"]

    def test_first_passes_over_a_failure(self) -> None:
        run = self.flow("first")
        run.start("g", "a", "b")
        run.settle("a", failed())
        assert run.commands() == ()
        run.settle("b", ok("B"))
        run.end()
        assert run.state.nodes["g"].ended is not None
        assert run.state.nodes["g"].ended.output == Labelled(["B"])

    def test_first_fails_when_none_succeeds_and_that_failure_counts(self) -> None:
        run = self.flow("first")
        run.start("g")
        run.run("a", failed())
        run.run("b", failed("connect"))
        assert run.error_of("g") == "no parallel step succeeded; a: code happened"
        assert run.finish().step == "g"

    def test_first_that_failed_is_absolved_where_every_failed_member_is_looked_at(self) -> None:
        run = self.flow("first", looked_at=["a", "b"])
        run.start("g")
        run.run("a", failed())
        run.run("b", failed())
        run.run("c", ok())
        assert run.finish() == Finish()

    def test_any_takes_the_first_to_end_even_if_it_failed(self) -> None:
        run = self.flow("any")
        run.start("g", "a", "b")
        run.settle("a", failed())
        assert run.commands() == (Cancel("b"),)
        run.settle("b", cancelled())
        run.end()
        assert run.error_of("g") == "a: code happened"
        assert run.finish().step == "g"

    def test_any_is_not_settled_by_a_member_that_was_skipped(self) -> None:
        run = table(group("g", "a b", "any"), node("a", parent="g", conditional=True), node("b", parent="g"))
        run.start("g")
        run.judge("a", taken=False)
        run.end()
        run.run("b", ok("B"))
        ended = run.state.nodes["g"].ended
        assert ended is not None
        assert ended.output == Labelled(["B"])

    @pytest.mark.parametrize("wait_for", ["any", "first"])
    def test_a_group_whose_members_were_all_skipped_yields_nothing(self, wait_for: str) -> None:
        run = table(group("g", "a", wait_for), node("a", parent="g", conditional=True))
        run.start("g")
        run.judge("a", taken=False)
        run.end()
        ended = run.state.nodes["g"].ended
        assert ended is not None
        assert (ended.end, ended.output.value) == ("ok", [])

    def test_a_skipped_member_of_all_is_null(self) -> None:
        run = table(group("g", "a"), node("a", parent="g", conditional=True))
        run.start("g")
        run.judge("a", taken=False, label=UNTRUSTED)
        run.end()
        ended = run.state.nodes["g"].ended
        assert ended is not None
        assert ended.output == Labelled([None], parts={"/0": UNTRUSTED})

    def test_an_empty_group_ends_as_it_starts(self) -> None:
        run = table(group("g", ""))
        run.start("g")
        run.end()
        assert run.end_of("g") == "ok"

    def test_a_group_with_a_blocked_member_is_blocked(self) -> None:
        run = table(node("x"), group("g", "a", after=("x",)), node("a", "x", parent="g"), looked_at=["x"])
        run.run("x", failed())
        run.start("g")
        run.end()
        assert run.end_of("g") == "blocked"
        assert run.error_of("g") == "a: dependency x failed"
        assert run.finish() == Finish()

    def test_members_that_have_not_started_are_called_off_without_starting(self) -> None:
        run = table(
            group("g", "a b c d", "first"),
            node("a", parent="g"),
            node("b", "d", parent="g"),
            node("c", parent="g", retry=retry()),
            node("d", parent="g"),
        )
        run.start("g", "a", "d")
        run.run("c", failed("connect"))
        run.settle("a", ok())
        assert run.cancelling() == ["d"]
        run.end()
        assert run.end_of("b") == run.end_of("c") == "cancelled"
        run.settle("d", cancelled())
        run.end()
        assert run.finish() == Finish()

    def test_a_group_inside_is_called_off_with_all_below_it(self) -> None:
        run = table(
            group("g", "a h k", "first"),
            node("a", parent="g"),
            group("h", "b", parent="g"),
            node("b", parent="h"),
            group("k", "c", parent="g"),
            node("c", parent="k"),
        )
        run.start("g", "a", "h", "b")
        run.settle("a", ok())
        assert run.cancelling() == ["b"]
        run.end()
        assert run.end_of("k") == run.end_of("c") == "cancelled"
        assert run.end_of("h") == ""
        run.settle("b", cancelled())
        run.end()
        assert run.end_of("h") == "cancelled"
        assert run.end_of("g") == "ok"

    def test_a_called_off_step_that_succeeds_all_the_same_has_succeeded(self) -> None:
        run = self.flow("first")
        run.start("g", "a", "b")
        run.settle("a", ok("A"))
        run.settle("b", ok("B"))
        run.end()
        assert run.end_of("b") == "ok"
        assert run.state.nodes["g"].ended is not None
        assert run.state.nodes["g"].ended.output == Labelled(["A"])

    def test_a_group_inside_first_answers_for_its_members(self) -> None:
        run = table(
            group("g", "h a", "first"),
            group("h", "b", parent="g"),
            node("b", parent="h"),
            node("a", parent="g"),
        )
        run.start("g", "h", "a")
        run.run("b", failed())
        assert run.end_of("h") == "failed"
        assert run.state.halt is None
        run.settle("a", ok())
        run.end()
        assert run.finish() == Finish()

    def test_a_halted_run_skips_groups_that_have_not_started_with_all_below(self) -> None:
        run = table(node("x"), group("g", "a", after=("x",)), node("a", parent="g"))
        run.run("x", failed())
        assert run.end_of("g") == run.end_of("a") == "blocked"
        assert run.finish().step == "x"


class TestStopping:
    def test_what_runs_is_cancelled_and_what_does_not_is_skipped(self) -> None:
        run = table(node("a"), node("b", "a"), node("c", retry=retry()))
        run.start("a")
        run.run("c", failed("connect"))
        run.halt()
        assert run.cancelling() == ["a"]
        run.end()
        assert run.error_of("b") == "not started: stopped"
        assert run.end_of("c") == "failed"
        run.settle("a", cancelled())
        assert run.end_of("a") == "cancelled"
        finish = run.finish()
        assert finish.error is not None
        assert finish.error.kind == "cancelled"
        assert finish.step == ""

    def test_at_the_deadline_a_running_step_fails_with_timeout(self) -> None:
        run = table(node("a"))
        run.start("a")
        run.halt("timeout")
        run.settle("a", cancelled())
        ended = run.state.nodes["a"].ended
        assert ended is not None
        assert ended.error is not None
        assert (ended.end, ended.error.kind) == ("failed", "timeout")

    def test_a_step_that_ends_by_itself_while_it_is_cancelled_keeps_its_end(self) -> None:
        run = table(node("a"))
        run.start("a")
        run.halt()
        run.settle("a", ok())
        assert run.end_of("a") == "ok"

    def test_a_run_that_is_stopped_when_all_has_ended_has_not_succeeded(self) -> None:
        run = table(node("a"))
        run.run("a", ok())
        run.halt()
        assert run.finish().error is not None

    def test_a_run_that_was_failing_when_it_is_stopped_keeps_its_failure(self) -> None:
        run = table(node("a"), node("b"))
        run.start("b")
        run.run("a", failed())
        run.halt("timeout")
        assert run.cancelling() == ["b"]
        run.settle("b", cancelled())
        assert run.finish().step == "a"


class TestLabels:
    def test_what_a_step_writes_carries_the_label_of_its_condition(self) -> None:
        run = table(node("a", conditional=True))
        run.judge("a", taken=True, label=UNTRUSTED)
        run.run("a", ok())
        ended = run.state.nodes["a"].ended
        assert ended is not None
        assert ended.label == ended.output.label == UNTRUSTED

    def test_the_null_of_a_step_skipped_by_a_tainted_condition_carries_that_label(self) -> None:
        run = table(node("a", conditional=True))
        run.judge("a", taken=False, label=UNTRUSTED)
        run.end()
        ended = run.state.nodes["a"].ended
        assert ended is not None
        assert ended.output == Labelled(None, UNTRUSTED)

    def test_a_skip_because_of_a_failure_carries_the_label_of_the_failure(self) -> None:
        run = table(node("a"), node("b", "a"), node("c"), looked_at=["a"])
        run.run("a", failed(label=UNTRUSTED))
        ended = run.state.nodes["b"].ended
        assert ended is not None
        assert ended.label == UNTRUSTED

    def test_the_branch_that_a_run_stands_in_labels_everything(self) -> None:
        plan = arrange([group("g", "a"), node("a", parent="g")])
        run = Table(plan, control=SECRET)
        run.start("g")
        run.run("a", ok())
        for key in ("a", "g"):
            ended = run.state.nodes[key].ended
            assert ended is not None
            assert ended.label == ended.output.whole == SECRET


def test_the_record_folded_again_gives_the_same_state() -> None:
    run = table(node("a"), node("b", "a?", conditional=True), node("c", "b", retry=retry()))
    run.run("a", failed())
    run.judge("b", taken=True)
    run.run("b", ok())
    run.run("c", failed("connect"))
    assert folded_again(run) == snapshot(run.state)
    assert run.commands() == (Start("c", 2, run.entries[-1].at + 1.0),)


def test_an_entry_that_leaves_a_gap_is_refused() -> None:
    plan = arrange([node("a")])
    with pytest.raises(ValueError, match="entry 3 follows entry 0"):
        fold(plan, [Entry(seq=3, at=0.0, data=RunStarted(run="r", ensemble="e", plan=""))])


def test_ends_of_skipped_steps_are_commands_that_hold_their_entry() -> None:
    run = table(node("a", conditional=True))
    run.judge("a", taken=False)
    command = run.command("a")
    assert isinstance(command, End)
    assert command.data.end == "skipped"
