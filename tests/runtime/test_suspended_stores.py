"""Runs that wait for people, in each store: begun, decided about and gone on with in different processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.clock import FakeClock
from luthier.errors import RunError, RunLostError
from luthier.store import DEFAULT
from tests.runtime.killing import BOUND, KILLED, acts, dying, made
from tests.runtime.test_waiting_kills import POLICY, WAITS, gone_on, root_of, sound, to_the_approval
from tests.workflows.faulty import ALL

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    store = DEFAULT if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    return made(tmp_path / "project", WAITS, store=store, more=POLICY)


def luthier(project: Path, *words: str) -> tuple[int, Any]:
    """The command in a process of its own: its exit status, and the document that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "luthier", *words, "--json"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def begun(project: Path) -> str:
    """The id of a run that a process has begun, and left to wait for an answer."""
    assert dying(project, "waits", ALL) == 0
    _, listed = luthier(project, "runs", "list", "--status", "suspended")
    (row,) = listed["runs"]
    assert (row["owner"], row["waiting"][0]["step"]) == ("", "ask")
    return str(row["id"])


def waiting(project: Path) -> str:
    """The id of the one request that waits."""
    _, listed = luthier(project, "approvals", "list")
    (request,) = listed["requests"]
    assert request["state"] == "waiting"
    return str(request["id"])


def test_each_process_does_its_part_and_none_waits(project: Path) -> None:
    run = begun(project)
    assert luthier(project, "runs", "resume", run)[0] != 0, "it waits still"
    assert luthier(project, "approvals", "approve", waiting(project), "--answer", "7")[0] == 0
    assert luthier(project, "runs", "resume", run)[0] == 3, "now its call waits"
    assert acts(project)[0]["pay"] == 0
    exit_status, ended = luthier(project, "approvals", "approve", waiting(project), "--resume")
    assert (exit_status, ended["success"]) == (0, True)
    assert (ended["output"]["sum"], ended["output"]["told"]) == (7, 1)
    assert acts(project)[0]["pay"] == 1
    assert luthier(project, "approvals", "list")[1] == {"requests": []}


def test_a_no_ends_it_and_nothing_was_done(project: Path) -> None:
    run = begun(project)
    exit_status, ended = luthier(project, "approvals", "deny", waiting(project), "-m", "No.", "--resume")
    assert exit_status == 3
    assert (ended["id"], ended["error"]["kind"], ended["error"]["reason"]) == (run, "denied", "No.")
    assert acts(project)[0]["pay"] == 0


async def test_what_nobody_answers_expires_and_the_run_ends(project: Path) -> None:
    clock = FakeClock()

    async def opened(*, resume: str = "") -> Any:
        runtime = Runtime.open(project / "luthier.yaml", clock=clock)
        try:
            if not resume:
                return await runtime.run("waits", durable=True)
            assert runtime.runs.expired(runtime.runs.get(resume))
            assert [one.state for one in await runtime.approvals.list()] == ["expired"]
            run = await runtime.runs.resume(resume)
            assert await runtime.approvals.list() == ()
        finally:
            await runtime.close()
        return run

    run = await opened()
    await clock.advance(86_401)
    ended = await opened(resume=run.id)
    assert (ended.success, ended.error["kind"]) == (False, "approval")
    assert acts(project)[0]["pay"] == 0


@pytest.mark.parametrize(("last", "expected"), [(1, "ok"), (3, "ok"), (4, "unknown")])
async def test_killed_when_it_was_approved_it_is_gone_on_with(
    project: Path, last: int, expected: str
) -> None:
    await to_the_approval(project)
    assert luthier(project, "approvals", "approve", waiting(project))[0] == 0
    assert dying(project, "waits", last, await root_of(project)) == KILLED
    assert await sound(project, await gone_on(project)) == expected


async def test_of_several_that_resume_at_once_one_has_the_run(project: Path) -> None:
    await to_the_approval(project)
    assert luthier(project, "approvals", "approve", waiting(project))[0] == 0
    id = await root_of(project)

    async def resumed() -> str:
        async with Runtime.open(project / "luthier.yaml") as runtime:
            try:
                return "ok" if (await runtime.runs.resume(id)).success else "failed"
            except (RunLostError, RunError) as error:
                return type(error).__name__

    ends = await asyncio.gather(*(resumed() for _ in range(3)))
    assert ends.count("ok") == 1, ends
    assert acts(project)[0]["pay"] == 1
