"""Kill drills of runs that wait for people: killed before and after each decision, and gone on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from luthier import Runtime
from tests.ended import gone
from tests.runtime import killing
from tests.runtime.killing import BOUND, KILLED, acts, made
from tests.workflows.faulty import ALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from luthier.workflows import Run

WAITS = """
ensemble: waits
agents:
  - {name: ask, operation: hitl, config: {prompt: Pay?, schema: {integer: [1, 9]}}}
  - {name: pay, operation: tools, config: {mcp: s, tool: do}, input: {key: pay, sum: "${ask.output.answer}"}}
  - {name: tell, operation: tools, config: {mcp: s, tool: look}, input: {key: "told-${pay.output.n}"}}
outputs: {sum: "${ask.output.answer}", by: "${ask.output.approver}", told: "${tell.output.n}"}
"""
POLICY = "policies: [{name: pay, when: {tool: mcp://s/do}, then: ask, reason: It costs money.}]\n"
GIVES = {"sum": 7, "by": "operator (python)", "told": 1}

BEGUN, DECIDED, APPROVED = 3, 7, 11
"""Entries that are written until the question, from its answer to the approval, and from that to the end."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path / "project", WAITS, more=POLICY)


def dying(project: Path, last: int, *run: str) -> bool:
    """Whether a process was killed that begins the run, or goes on with it, and may write so many entries."""
    return killing.dying(project, "waits", last, *run) == KILLED


async def decided(project: Path) -> int:
    """Decide about all that waits; how many were decided about."""
    async with Runtime.open(project / "luthier.yaml") as runtime:
        waiting = [one for one in await runtime.approvals.list() if one.state == "waiting"]
        for one in waiting:
            await runtime.approvals.approve(one.id, answer=7 if one.schema else msgspec.UNSET)
        return len(waiting)


async def root_of(project: Path) -> str:
    async with Runtime.open(project / "luthier.yaml") as runtime:
        return next((row.id for row in runtime.runs.list() if row.ended_at is None), "")


async def gone_on(project: Path) -> Run | None:
    """The run at its end, gone on with and decided about as often as that takes; None: it never began."""
    run = None
    for _ in range(4):
        id = await root_of(project)
        if not id:
            return run
        await decided(project)
        async with Runtime.open(project / "luthier.yaml") as runtime:
            run = await runtime.runs.resume(id)
    assert run is not None
    return run


async def to_the_question(project: Path) -> None:
    async with Runtime.open(project / "luthier.yaml") as runtime:
        assert (await runtime.run("waits", durable=True)).suspended


async def to_the_approval(project: Path) -> None:
    await to_the_question(project)
    await decided(project)
    async with Runtime.open(project / "luthier.yaml") as runtime:
        assert (await runtime.runs.resume(await root_of(project))).suspended


async def sound(project: Path, run: Run | None) -> str:
    """How it ended, when all is as it must be."""
    counts, pids = acts(project)
    assert counts["pay"] <= 1, "what was approved once is done once"
    assert all(gone(pid, BOUND) for pid in pids)
    async with Runtime.open(project / "luthier.yaml") as runtime:
        assert await runtime.approvals.list() == (), "nothing is left to decide about"
        assert all(row.ended_at is not None for row in runtime.runs.list(nested=True))
    if run is None:
        return "nothing"
    if run.success:
        assert run.output == GIVES
        assert counts["pay"] == 1
        return "ok"
    assert run.error is not None
    assert run.error["kind"] == "unknown"
    return "unknown"


@pytest.mark.parametrize("last", [0, 1, BEGUN, BEGUN + 1])
async def test_killed_before_it_waits(project: Path, last: int, figure: Callable[[str], None]) -> None:
    assert dying(project, last) == (last <= BEGUN)
    end = await sound(project, await gone_on(project))
    figure(f"killed behind entry {last} on the way to the question: {end}")


@pytest.mark.parametrize("last", [1, 2, 4, 5, 6, DECIDED])
async def test_killed_between_answer_and_approval(
    project: Path, last: int, figure: Callable[[str], None]
) -> None:
    await to_the_question(project)
    assert await decided(project) == 1
    assert dying(project, last, await root_of(project))
    end = await sound(project, await gone_on(project))
    assert end == "ok", "nothing was sent, so it is asked for"
    figure(f"killed behind entry {last} after the answer: {end}")


@pytest.mark.parametrize(
    ("last", "expected"),
    [(1, "ok"), (2, "ok"), (3, "ok"), (4, "unknown"), (5, "unknown"), (APPROVED, "nothing")],
)
async def test_killed_after_the_approval(
    project: Path, last: int, expected: str, figure: Callable[[str], None]
) -> None:
    """The fourth entry says that the call is being sent: from there on nobody knows."""
    await to_the_approval(project)
    assert await decided(project) == 1
    assert dying(project, last, await root_of(project))
    end = await sound(project, await gone_on(project))
    assert end == expected
    figure(f"killed behind entry {last} after the approval: {end}")


async def test_killed_in_the_approved_act_it_is_not_done_again(
    project: Path, figure: Callable[[str], None]
) -> None:
    (project / "acts.kill").write_text("1")
    await to_the_approval(project)
    assert await decided(project) == 1
    assert dying(project, ALL, await root_of(project))
    end = await sound(project, await gone_on(project))
    assert end == "unknown"
    figure(f"killed in the approved act: {end}")
