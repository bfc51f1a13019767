"""Steps that wait for somebody outside, as the machine sees them, in every kind of group."""

from __future__ import annotations

from luthier.taint import UNTRUSTED, Labelled
from luthier.workflows.machine import End, Rest, Start, fold
from luthier.workflows.plan import plan
from luthier.workflows.record import ItemsRead, Resumed, Suspended, decode, encode_all
from tests.workflows.house import read
from tests.workflows.playing import (
    Table,
    failed,
    folded_again,
    group,
    node,
    ok,
    retry,
    snapshot,
    table,
    waits,
)


def test_a_run_rests_when_all_that_is_left_waits_for_somebody() -> None:
    run = table(node("a"), node("b", "a"))
    run.suspend("a")
    assert run.commands() == (Rest(("a",)),)
    assert run.state.nodes["a"].phase == "suspended"


def test_what_does_not_depend_on_it_goes_on() -> None:
    run = table(node("a"), node("b"), node("c", "b"))
    run.suspend("a")
    assert run.starting == ["b"]
    run.start("b")
    assert run.commands() == (), "it does not rest while something runs"
    run.settle("b", ok())
    run.run("c", ok())
    assert run.resting() == ("a",)


def test_a_run_does_not_rest_while_an_attempt_is_to_come() -> None:
    run = table(node("a"), node("b", retry=retry(3)))
    run.suspend("a")
    run.start("b")
    run.settle("b", failed("connect"))
    assert run.starting == ["b"]
    assert run.resting() == ()


def test_what_was_decided_begins_the_same_attempt_again() -> None:
    run = table(node("a"), node("b", "a"))
    run.suspend("a")
    run.append(Resumed(decision="approved"), "a", 1)
    assert run.commands() == (Start("a", 1),)
    run.run("a", ok("yes"))
    assert run.state.nodes["a"].attempt == 1
    assert run.starting == ["b"]


def test_a_step_can_wait_more_than_once() -> None:
    run = table(node("a"))
    run.suspend("a")
    run.resume("a")
    assert run.state.nodes["a"].resumed is not None
    run.settle("a", waits("another"))
    assert run.resting() == ("a",)
    assert run.state.nodes["a"].phase == "suspended"
    run.resume("a")
    run.settle("a", ok())
    assert run.finish().error is None


def test_another_attempt_knows_nothing_of_what_the_one_before_has_waited_for() -> None:
    run = table(node("a", retry=retry(3)))
    run.suspend("a")
    run.resume("a")
    run.settle("a", failed("connect"))
    assert run.starting == ["a"]
    assert (run.state.nodes["a"].suspended, run.state.nodes["a"].resumed) == (None, None)


def test_several_that_wait_can_be_decided_about_one_by_one() -> None:
    run = table(node("a"), node("b"))
    run.suspend("a", "b")
    assert run.resting() == ("a", "b")
    run.resume("b")
    run.settle("b", ok())
    assert run.resting() == ("a",)


def test_a_failure_that_nobody_looks_at_calls_off_what_waits() -> None:
    run = table(node("a"), node("b"))
    run.suspend("a")
    run.run("b", failed())
    assert run.end_of("a") == "cancelled"
    assert run.error_of("a") == "not decided about, because b failed"
    assert run.finish().step == "b"


def test_what_would_wait_in_a_run_that_has_failed_is_called_off_instead() -> None:
    run = table(node("a"), node("b"))
    run.start("a", "b")
    run.settle("b", failed())
    run.settle("a", waits("q"))
    assert run.end_of("a") == "cancelled"
    assert run.finish().step == "b"


def test_a_decision_that_comes_when_it_is_called_off_changes_nothing() -> None:
    run = table(node("a"), node("b"))
    run.suspend("a")
    run.start("b")
    run.settle("b", failed())
    run.append(Resumed(decision="approved"), "a", 1)
    assert run.starting == []
    run.end()
    assert run.end_of("a") == "cancelled"
    assert run.finish().step == "b"


def test_a_deadline_fails_what_waits_and_a_user_calls_it_off() -> None:
    for kind, end in (("timeout", "failed"), ("cancelled", "cancelled")):
        run = table(node("a"))
        run.suspend("a")
        run.halt(kind)
        run.end()
        assert run.end_of("a") == end
        assert run.finish().error is not None


def test_what_would_wait_in_a_run_that_was_stopped_is_ended() -> None:
    run = table(node("a"))
    run.start("a")
    run.halt()
    run.settle("a", waits("q"))
    assert run.end_of("a") == "cancelled"


def test_what_waits_and_what_was_decided_can_be_read_back() -> None:
    run = table(node("a"), node("b"))
    asked = Labelled({"requestState": "x"}, UNTRUSTED)
    given = Suspended(
        what="input", requests=("q", "r"), prompt="?", schema={"type": "object"}, expires=9.0, asked=asked
    )
    run.start("a", "b")
    run.append(given, "a", 1)
    run.append(Suspended(what="run", run="inner"), "b", 1)
    answer = Labelled({"note": "fine"})
    run.append(Resumed(decision="approved", request="q", answer=answer, by="ann", reason="ok"), "a", 1)
    read_back = decode(encode_all(run.entries))
    assert list(read_back) == run.entries
    assert snapshot(fold(run.plan, read_back)) == folded_again(run) == snapshot(run.state)


class TestGroups:
    def test_a_parallel_that_waits_for_all_waits_for_people(self) -> None:
        run = table(group("g", "a b"), node("a", parent="g"), node("b", parent="g"), node("c", "g"))
        run.start("g")
        run.suspend("a")
        run.run("b", ok())
        assert run.resting() == ("a",)
        run.resume("a")
        run.settle("a", ok())
        run.end()
        assert run.starting == ["c"]

    def test_a_parallel_that_has_its_answer_waits_for_nobody(self) -> None:
        for wait_for in ("any", "first"):
            run = table(group("g", "a b", wait_for), node("a", parent="g"), node("b", parent="g"))
            run.start("g")
            run.suspend("a")
            run.run("b", ok())
            assert run.end_of("a") == "cancelled"
            assert run.end_of("g") == "ok"

    def test_a_parallel_whose_other_member_failed_waits_for_the_first(self) -> None:
        run = table(group("g", "a b", "first"), node("a", parent="g"), node("b", parent="g"))
        run.start("g")
        run.suspend("a")
        run.run("b", failed())
        assert run.resting() == ("a",)
        run.resume("a")
        run.settle("a", ok())
        run.end()
        assert run.end_of("g") == "ok"

    def test_each_item_of_a_loop_can_wait_while_the_others_go_on(self) -> None:
        run = written("{foreach: {id: g, items: [1, 2, 3], step: a}}")
        run.start("g")
        run.append(ItemsRead(items=Labelled([1, 2, 3])), "g")
        run.suspend("g[0].a")
        run.run("g[1].a", ok())
        run.run("g[2].a", ok())
        assert run.resting() == ("g[0].a",)
        run.resume("g[0].a")
        run.settle("g[0].a", ok())
        run.end()
        assert run.end_of("g") == "ok"

    def test_a_failure_that_is_caught_calls_off_what_waits_beside_it(self) -> None:
        run = attempts()
        run.start("t", "p")
        run.suspend("a")
        run.run("b", failed())
        assert run.end_of("a") == "cancelled"
        run.run("c", ok())
        run.run("f", ok())
        assert run.end_of("t") == "ok"

    def test_what_stands_under_finally_may_wait(self) -> None:
        run = attempts()
        run.start("t", "p")
        run.run("a", ok())
        run.run("b", ok())
        run.suspend("f")
        assert run.resting() == ("f",)
        run.resume("f")
        run.settle("f", ok())
        run.end()
        assert run.finish().error is None

    def test_a_run_that_is_stopped_does_not_wait_under_finally(self) -> None:
        run = attempts()
        run.start("t", "p")
        run.run("a", ok())
        run.run("b", ok())
        run.suspend("f")
        run.halt()
        assert isinstance(run.command("f"), End)
        run.end()
        assert run.finish().error is not None


def written(flow: str) -> Table:
    """A run of a flow of steps a, b, c and f."""
    steps = "".join(f"  - {{name: {name}, operation: transform, config: {{value: 1}}}}\n" for name in "abcf")
    return Table(plan(read(f"ensemble: e\nagents:\n{steps}flow: [{flow}]\n")))


def attempts() -> Table:
    """A try whose steps are a parallel of a and b, with c in its catch and f in its finally."""
    both = "{parallel: {id: p, steps: [a, b]}}"
    return written(f"{{try: {{id: t, steps: [{both}], catch: [c], finally: [f]}}}}")
