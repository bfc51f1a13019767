"""Durable runs that wait for people: suspended in one runtime, decided in another, gone on with in more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.clock import FakeClock
from luthier.errors import NotFoundError, Refused, RunError, RunLostError, StoreError
from luthier.taint import Integrity
from luthier.testing import FaultyRuns, MemoryServer
from luthier.wire import Result
from luthier.workflows import MemoryRuns
from luthier.workflows.runs import Wanted
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from luthier.govern import Request
    from luthier.workflows import Run

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def ask(name: str = "ask", **config: Any) -> dict[str, Any]:
    return {"name": name, "operation": "hitl", "config": {"prompt": "Go on?", **config}}


def do(name: str = "do", tool: str = "do", **rest: Any) -> dict[str, Any]:
    return {
        "name": name,
        "operation": "tools",
        "config": {"mcp": "s", "tool": tool},
        "input": {"key": name},
        **rest,
    }


def ensemble(*steps: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"ensemble": "e", "agents": list(steps), **rest}


class Project:
    """A project with one server that counts what is done to it, opened again and again."""

    def __init__(self, root: Path, *, policies: Any = None, ensembles: Any = ()) -> None:
        self.root = root
        self.clock = FakeClock()
        self.done: list[str] = []
        self.asked: list[Any] = []
        self.ensembles = list(ensembles)
        self.settings: dict[str, Any] = {"mcpServers": {"s": {"command": "python", "args": ["none.py"]}}}
        if policies is not None:
            self.settings["policies"] = policies
        self.server = MemoryServer("s", {"do": self.do, "form": self.form})

    def do(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.done.append(arguments["key"])
        return {"n": len(self.done)}

    def form(self, _: dict[str, Any]) -> Any:
        params = self.server.received[-1]["params"]
        self.asked.append((params.get("inputResponses"), params.get("requestState")))
        if "inputResponses" in params:
            return params["inputResponses"]["who"]
        request = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": NAME}}
        return Result(
            {"resultType": "input_required", "inputRequests": {"who": request}, "requestState": "opaque"}
        )

    async def opened(self, work: Callable[[Runtime], Awaitable[Any]], **parts: Any) -> Any:
        async with (
            asyncio.timeout(LONG),
            Runtime.open(
                self.settings,
                root=self.root,
                transports={"s": self.server.transport},
                ensembles=self.ensembles,
                clock=self.clock,
                **parts,
            ) as runtime,
        ):
            return await work(runtime)

    async def begun(self, written: Any, inputs: Any = None, **parts: Any) -> Run:
        run: Run = await self.opened(lambda rt: rt.run(written, inputs or {}, durable=True), **parts)
        self.written = written
        return run

    async def resumed(self, run: Run, written: Any = None) -> Run:
        async def go_on(rt: Runtime) -> Run:
            return await rt.runs.resume(run.id, ensemble=rt.ensemble(written or self.written))

        resumed: Run = await self.opened(go_on)
        return resumed

    async def requests(self) -> tuple[Request, ...]:
        found: tuple[Request, ...] = await self.opened(lambda rt: rt.approvals.list())
        return found

    async def decided(self, word: str = "approve", **how: Any) -> Request:
        (request,) = await self.requests()
        return await self.approved(request, word, **how)

    async def approved(self, request: Request, word: str = "approve", **how: Any) -> Request:
        done: Request = await self.opened(lambda rt: getattr(rt.approvals, word)(request.id, **how))
        return done


def waits(run: Run, *steps: str) -> None:
    assert not run.success
    assert run.refused
    assert tuple(one.step for one in run.suspended) == steps


class TestQuestions:
    async def test_a_run_is_suspended_and_goes_on_with_the_answer(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        steps = [do("before"), ask(schema={"enum": ["a", "b"]}), do("after")]
        text = ensemble(*steps, flow=["before", "ask", "after"])
        run = await project.begun({**text, "outputs": "${ask.output.answer}"})
        waits(run, "ask")
        row = await project.opened(lambda rt: asyncio.to_thread(rt.runs.get, run.id))
        assert (row.status, row.owner, row.waiting[0].what) == ("suspended", "", "hitl")
        decided = await project.decided(answer="b", why="It is better.")
        assert (decided.run, decided.root, decided.durable) == (run.id, run.id, True)
        resumed = await project.resumed(run)
        assert resumed.success
        assert resumed.output == "b"
        assert resumed.steps["ask"].output["reason"] == "It is better."
        assert resumed.label.integrity is Integrity.trusted
        assert project.done == ["before", "after"], "what had ended is not run again"
        assert await project.requests() == ()
        with pytest.raises(RunError, match="has ended"):
            await project.resumed(run)

    async def test_it_does_not_go_on_before_somebody_has_decided(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(ask(), do()))
        with pytest.raises(RunError, match="waits for somebody") as caught:
            await project.resumed(run)
        (request,) = await project.requests()
        assert request.id in caught.value.hint
        again = await project.opened(lambda rt: asyncio.to_thread(rt.runs.get, run.id))
        assert again.status == "suspended"

    async def test_a_no_fails_the_step_and_a_second_decision_is_refused(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(ask(), do("after", depends_on=["ask"])))
        await project.decided("deny", why="No.")
        for word in ("approve", "deny"):
            with pytest.raises(Refused, match="decided already"):
                await project.decided(word)
        resumed = await project.resumed(run)
        assert resumed.error is not None
        assert (resumed.error["kind"], resumed.error["reason"]) == ("denied", "No.")
        assert project.done == []

    async def test_a_token_decides_once(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(ask()))
        (request,) = await project.requests()
        token = await project.opened(lambda rt: rt.approvals.token(request.id))
        await project.opened(lambda rt: rt.approvals.approve(token, by="client:eve"))
        with pytest.raises(NotFoundError):
            await project.opened(lambda rt: rt.approvals.approve(token))
        assert (await project.resumed(run)).output["approver"] == "client:eve (python)"

    @pytest.mark.parametrize(("then", "success"), [("fail", False), ("continue", True)])
    async def test_what_nobody_answers_expires(self, tmp_path: Path, then: str, success: bool) -> None:  # noqa: FBT001
        project = Project(tmp_path)
        run = await project.begun(ensemble(ask(timeout=60_000, onTimeout=then)))
        with pytest.raises(RunError):
            await project.resumed(run)
        await project.clock.advance(61)
        (request,) = await project.requests()
        assert request.state == "expired"
        assert await project.opened(
            lambda rt: asyncio.to_thread(lambda: rt.runs.expired(rt.runs.get(run.id)))
        )
        with pytest.raises(Refused, match="has expired"):
            await project.approved(request)
        resumed = await project.resumed(run)
        assert await project.requests() == ()
        assert resumed.success is success
        if success:
            assert resumed.output["status"] == "expired"
        else:
            assert resumed.error is not None
            assert resumed.error["kind"] == "approval"

    async def test_several_that_wait_are_decided_about_one_by_one(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(ask("one"), ask("two")))
        waits(run, "one", "two")
        first, second = await project.requests()
        await project.opened(lambda rt: rt.approvals.approve(second.id))
        run = await project.resumed(run)
        waits(run, first.step)
        assert [one.id for one in await project.requests()] == [first.id]
        await project.opened(lambda rt: rt.approvals.approve(first.id))
        assert (await project.resumed(run)).success

    async def test_cancelled_it_waits_no_more_and_its_finally_runs(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        text = ensemble(ask(), do("tidy"), flow=[{"try": {"steps": ["ask"], "finally": ["tidy"]}}])
        (tmp_path / "ensembles").mkdir()
        project.ensembles = [text]
        run = await project.begun("e")
        row = await project.opened(lambda rt: rt.runs.cancel(run.id))
        assert row.status == "cancelled"
        assert project.done == ["tidy"]
        assert await project.requests() == ()


class TestControlSteps:
    async def test_each_item_of_a_loop_asks_for_itself(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        text = ensemble(
            ask(prompt="Take ${item}?"),
            flow=[{"foreach": {"id": "each", "items": ["a", "b"], "step": "ask"}}],
        )
        run = await project.begun({**text, "outputs": "${each.output}"})
        waits(run, "each[0].ask", "each[1].ask")
        assert {one.prompt for one in await project.requests()} == {"Take a?", "Take b?"}
        for request in await project.requests():
            await project.approved(request, why=request.prompt)
        resumed = await project.resumed(run)
        assert [one["reason"] for one in resumed.output] == ["Take a?", "Take b?"]

    async def test_a_race_that_is_over_takes_its_question_back(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        text = ensemble(ask(), do(), flow=[{"parallel": {"waitFor": "any", "steps": ["ask", "do"]}}])
        run = await project.begun(text)
        assert run.success
        assert await project.requests() == ()

    async def test_an_ensemble_inside_is_suspended_and_gone_on_with_too(self, tmp_path: Path) -> None:
        inner = ensemble(do("first"), ask(), flow=["first", "ask"]) | {"ensemble": "inner"}
        project = Project(tmp_path, ensembles=[inner])
        outer = ensemble(
            {"name": "within", "operation": "ensemble", "config": {"ensemble": "inner"}},
            do("last", depends_on=["within"]),
        )
        run = await project.begun({**outer, "outputs": "${within.output.approver}"})
        waits(run, "within")
        (request,) = await project.requests()
        assert request.root == run.id
        assert request.run != run.id
        with pytest.raises(RunError, match="inside"):
            await project.opened(lambda rt: rt.runs.resume(request.run))
        await project.decided()
        resumed = await project.resumed(run)
        assert resumed.success
        assert resumed.output == "operator (python)"
        assert project.done == ["first", "last"]
        assert await project.requests() == ()

    async def test_cancelled_what_waits_inside_waits_no_more(self, tmp_path: Path) -> None:
        inside = {"name": "within", "operation": "ensemble", "config": {"ensemble": "inner"}}
        project = Project(tmp_path, ensembles=[ensemble(ask()) | {"ensemble": "inner"}, ensemble(inside)])
        run = await project.begun("e")
        assert (await project.opened(lambda rt: rt.runs.cancel(run.id))).status == "cancelled"
        assert await project.requests() == ()
        rows = await project.opened(lambda rt: asyncio.to_thread(rt.runs.list))
        assert {row.status for row in rows} == {"cancelled"}

    async def test_what_waits_is_not_taken_for_a_result_that_is_kept(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(do("book", tool="form", cache={"ttl": 60})))
        await project.decided(answer={"name": "Ada"})
        resumed = await project.resumed(run)
        assert resumed.output == {"action": "accept", "content": {"name": "Ada"}}
        assert not resumed.steps["book"].cached


ASK_FIRST = [{"name": "ask first", "when": {"tool": "mcp://s/do"}, "then": "ask", "reason": "It counts."}]


class TestApprovals:
    async def test_a_call_is_held_back_and_made_once_when_it_was_approved(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.begun(ensemble(do()))
        waits(run, "do")
        assert project.done == []
        (request,) = await project.requests()
        assert (request.what, request.uri, request.reason) == ("call", "mcp://s/do", "It counts.")
        await project.decided()
        resumed = await project.resumed(run)
        assert resumed.success
        assert project.done == ["do"]
        assert await project.requests() == ()

    async def test_a_call_that_was_denied_is_not_made(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.begun(ensemble(do()))
        await project.decided("deny", why="Too dear.")
        resumed = await project.resumed(run)
        assert resumed.error is not None
        assert resumed.error["kind"] == "denied"
        assert "Too dear." in resumed.error["message"]
        assert project.done == []
        assert await project.requests() == ()

    async def test_an_approval_that_expired_fails_the_step(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.begun(ensemble(do()))
        await project.clock.advance(90_000)
        resumed = await project.resumed(run)
        assert resumed.error is not None
        assert resumed.error["kind"] == "approval"
        assert project.done == []

    async def test_the_approval_of_one_step_is_not_for_another(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.begun(ensemble(do("a"), do("b", depends_on=["a"])))
        await project.decided()
        again = await project.resumed(run)
        waits(again, "b")
        await project.decided()
        assert (await project.resumed(run)).success
        assert project.done == ["a", "b"]

    async def test_a_tool_that_changed_meanwhile_is_asked_for_anew(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.begun(ensemble(do()))
        first = await project.decided()
        project.server.schemas["do"] = {"type": "object", "description": "Another."}

        async def repinned(rt: Runtime) -> None:
            review = await rt.review_tools("s")
            await rt.pins.approve(review, ["do"], by="me")

        await project.opened(repinned)
        again = await project.resumed(run)
        waits(again, "do")
        (second,) = await project.requests()
        assert second.id != first.id
        assert second.state == "waiting"
        assert project.done == []

    async def test_a_run_that_is_not_durable_does_not_leave_a_request_behind(self, tmp_path: Path) -> None:
        project = Project(tmp_path, policies=ASK_FIRST)
        run = await project.opened(lambda rt: rt.run(ensemble(do())))
        assert run.suspended == ()
        assert run.error["kind"] == "approval"
        assert await project.requests() == ()


class TestForms:
    async def test_what_a_server_asks_for_is_answered_later_with_its_state(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(do("book", tool="form")))
        waits(run, "book")
        (request,) = await project.requests()
        assert (request.what, request.prompt, request.schema) == ("input", "Who?", NAME)
        with pytest.raises(Refused, match="does not fit"):
            await project.decided(answer={"name": 3})
        await project.decided(answer={"name": "Ada"})
        resumed = await project.resumed(run)
        given = {"action": "accept", "content": {"name": "Ada"}}
        assert resumed.output == given
        assert project.asked == [(None, None), ({"who": given}, "opaque")]
        assert await project.requests() == ()

    async def test_a_no_declines(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(do("book", tool="form")))
        await project.decided("deny")
        assert (await project.resumed(run)).output == {"action": "decline"}

    @pytest.mark.parametrize("last", [3, 4])
    async def test_cut_off_before_anybody_was_asked_it_asks_when_the_server_has_said_so(
        self, tmp_path: Path, last: int
    ) -> None:
        project, store = Project(tmp_path), MemoryRuns()
        text = ensemble(do("book", tool="form"))
        with pytest.raises(StoreError):
            await project.begun(text, runs=FaultyRuns(store, last))
        assert len(await project.requests()) == last - 3, "nobody is asked before that is written down"
        (row,) = store.list(Wanted())

        async def go_on(rt: Runtime) -> Run:
            return await rt.runs.resume(row.id, ensemble=rt.ensemble(text))

        run = await project.opened(go_on, runs=store)
        if last < 4:  # that the call is being sent, and not how it came back
            assert run.error["kind"] == "unknown"
            return
        waits(run, "book")
        await project.decided(answer={"name": "Ada"})
        run = await project.opened(go_on, runs=store)
        assert run.output == {"action": "accept", "content": {"name": "Ada"}}

    async def test_one_that_expired_fails_the_step(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        run = await project.begun(ensemble(do("book", tool="form")))
        await project.clock.advance(90_000)
        resumed = await project.resumed(run)
        assert resumed.error is not None
        assert resumed.error["kind"] == "approval"
        assert len(project.asked) == 1


async def test_of_two_that_resume_at_once_one_has_the_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    run = await project.begun(ensemble(ask(), do()))
    await project.decided()

    async def go_on() -> str:
        try:
            return "ok" if (await project.resumed(run)).success else "failed"
        except (RunLostError, RunError) as error:
            return type(error).__name__

    ends = await asyncio.gather(*(go_on() for _ in range(4)))
    assert ends.count("ok") == 1, ends
    assert project.done == ["do"]
