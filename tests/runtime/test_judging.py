"""Evaluators of durable runs: one that waits for a person suspends the run, one that was cut off goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import RunChangedError, StoreError
from luthier.testing import FaultyRuns
from luthier.workflows import MemoryRuns
from tests.runtime.test_suspended import Project, do, waits

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.workflows import Run

ASK_FIRST = [{"name": "judging", "when": {"tool": "mcp://s/judge"}, "then": "ask", "reason": "It is dear."}]


def judged(**scoring: Any) -> dict[str, Any]:
    write = do("write", scoring={"evaluator": "judge", "thresholds": {"minimum": 0.5}, **scoring})
    config = {"mcp": "s", "tool": "judge"}
    judge = {"name": "judge", "operation": "tools", "config": config, "input": {"of": "${input.output.n}"}}
    after = do("after", depends_on=["write"])
    return {
        "ensemble": "e",
        "scoring": {"initialBackoff": 0},
        "agents": [write, judge, after],
        "outputs": {"n": "${write.output.n}", "score": "${write.score}"},
    }


class Judged(Project):
    """A project whose evaluator is a tool, which gives these scores in turn."""

    def __init__(self, root: Path, *scores: float, policies: Any = None) -> None:
        super().__init__(root, policies=policies, ensembles=[judged()])
        self.seen: list[Any] = []
        left = list(scores)

        def judge(arguments: dict[str, Any]) -> float:
            self.seen.append(arguments["of"])
            return left.pop(0)

        self.server.tools["judge"] = judge

    async def gone_on(self, run: Run, **parts: Any) -> Run:
        resumed: Run = await self.opened(lambda rt: rt.runs.resume(run.id), **parts)
        return resumed


async def test_a_person_is_asked_and_what_is_judged_is_not_made_again(tmp_path: Path) -> None:
    project = Judged(tmp_path, 0.75, policies=ASK_FIRST)
    run = await project.begun("e")
    waits(run, "write")
    assert run.suspended[0].what == "run"
    assert (project.done, project.seen) == (["write"], [])
    await project.decided()
    resumed = await project.gone_on(run)
    assert resumed.output == {"n": 1, "score": 0.75}
    assert (project.done, project.seen) == (["write", "after"], [1])
    assert await project.requests() == ()


async def test_a_low_score_is_tried_again_and_asked_for_again(tmp_path: Path) -> None:
    project = Judged(tmp_path, 0.25, 0.75, policies=ASK_FIRST)
    run = await project.begun("e")
    await project.decided()
    again = await project.gone_on(run)
    waits(again, "write")
    assert project.done == ["write", "write"], "another attempt makes another"
    await project.decided()
    resumed = await project.gone_on(run)
    assert resumed.output == {"n": 2, "score": 0.75}
    assert project.seen == [1, 2]


async def test_a_no_fails_the_step_with_what_was_said(tmp_path: Path) -> None:
    project = Judged(tmp_path, policies=ASK_FIRST)
    run = await project.begun("e")
    await project.decided("deny", why="Too dear.")
    resumed = await project.gone_on(run)
    assert resumed.error is not None
    assert resumed.error["kind"] == "denied"
    assert "judge could not judge it" in resumed.error["message"]
    assert project.done == ["write"]


async def test_an_approval_that_expired_fails_the_step(tmp_path: Path) -> None:
    project = Judged(tmp_path, policies=ASK_FIRST)
    run = await project.begun("e")
    await project.clock.advance(90_000)
    resumed = await project.gone_on(run)
    assert resumed.error is not None
    assert resumed.error["kind"] == "approval"
    assert project.done == ["write"]


@pytest.mark.parametrize("last", range(3, 14))
async def test_cut_off_anywhere_it_goes_on(tmp_path: Path, last: int) -> None:
    """What was cut off when a call was sent is `unknown`, as everywhere."""
    project, store = Judged(tmp_path, 0.75), MemoryRuns()
    with pytest.raises(StoreError):
        await project.begun("e", runs=FaultyRuns(store, last))
    (run,) = await project.opened(listed, runs=store)
    resumed = await project.gone_on(run, runs=store)
    if resumed.success:
        assert resumed.output == {"n": 1, "score": 0.75}
        assert project.done == ["write", "after"]
    else:
        assert resumed.error is not None
        assert resumed.error["kind"] == "unknown", resumed.error
    assert len(project.seen) <= 1


async def listed(rt: Any) -> Any:
    return rt.runs.list()


async def test_the_ensemble_may_be_one_that_the_project_does_not_have(tmp_path: Path) -> None:
    project = Judged(tmp_path, 0.75, policies=ASK_FIRST)
    mine = {**judged(), "ensemble": "mine"}
    run = await project.begun(mine)
    await project.decided()
    assert (await project.resumed(run)).output == {"n": 1, "score": 0.75}


async def test_an_evaluator_that_was_changed_meanwhile_is_told_of(tmp_path: Path) -> None:
    project = Judged(tmp_path, 0.75, policies=ASK_FIRST)
    run = await project.begun("e")
    await project.decided()
    changed = judged()
    changed["agents"][1]["input"] = {"of": "all of it"}
    project.ensembles = [changed]
    with pytest.raises(RunChangedError):
        await project.gone_on(run)
