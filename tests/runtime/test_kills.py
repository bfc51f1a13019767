"""Kill drills: a process that drives a durable run is killed anywhere, and another goes on with the run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier import Runtime
from luthier.govern import AuditPlaces, verify
from luthier.spec import load_project
from luthier.store import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.workflows import Run, RunRow

BOUND = 40.0
SERVER = Path(__file__).parent / "counting_server.py"
ROOT = Path(__file__).parents[2]

DRILL = """
ensemble: drill
agents:
  - {name: one, operation: tools, config: {mcp: s, tool: do}, input: {key: one}}
  - {name: two, operation: tools, config: {mcp: s, tool: look}, input: {key: two}}
  - {name: inner, operation: ensemble, config: {ensemble: child}, input: {key: "${item}"}}
  - {name: tidy, operation: tools, config: {mcp: s, tool: do}, input: {key: tidy}}
flow:
  - try:
      steps:
        - parallel: {id: both, steps: [one, two]}
        - foreach: {id: each, items: [a], step: inner}
      finally: [tidy]
outputs: {sum: "${one.output.n + two.output.n}", each: "${each.output}", tidy: "${tidy.output.n}"}
"""
CHILD = """
ensemble: child
inputs: {key: {type: string, required: true}}
agents:
  - {name: act, operation: tools, config: {mcp: s, tool: do}, input: {key: "${input.key}"}}
outputs: ${act.output.n}
"""
GIVES = {"sum": 2, "each": [1], "tidy": 1}
REPEATABLE = {"two"}

ENTRIES = 29
"""That the drill makes, those of the run inside it among them."""

ACTS = 4


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ensembles").mkdir()
    (tmp_path / "ensembles" / "drill.yaml").write_text(DRILL)
    (tmp_path / "ensembles" / "child.yaml").write_text(CHILD)
    write(tmp_path, DEFAULT)
    return tmp_path


def write(project: Path, store: str) -> None:
    command = f"command: python, args: [{SERVER}, {project / 'acts'}]"
    entry = f"{{{command}, tools: {{idempotent: [look]}}}}"
    (project / "luthier.yaml").write_text(f"store: {store}\nmcpServers:\n  s: {entry}\n")


def dying(project: Path, last: int) -> int:
    """The exit status of a process that runs the drill and is killed behind that many entries."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.dying", "drill", str(last)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def acts(project: Path) -> tuple[Counter[str], list[int]]:
    """What was done, and by which processes."""
    file = project / "acts"
    lines = file.read_text().splitlines() if file.exists() else []
    pids = [int(line.removeprefix("pid ")) for line in lines if line.startswith("pid ")]
    return Counter(line for line in lines if not line.startswith("pid ")), pids


def gone(pid: int) -> bool:
    """Whether the process ends within the bound."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    ended = bool(poll.poll(BOUND * 1000))
    os.close(watched)
    return ended


async def gone_on(project: Path) -> tuple[Run, RunRow] | None:
    """The run, gone on with here; None where nothing of it was ever written."""
    async with Runtime.open(project / "luthier.yaml") as runtime:
        roots = [row for row in runtime.runs.list() if row.root == row.id]
        if not roots:
            return None
        (row,) = roots
        assert runtime.runs.interrupted(row) or row.ended_at is not None
        if row.ended_at is None:
            run = await runtime.runs.resume(row.id)
            assert runtime.runs.record(row.id) == run.record
            assert all(one.ended_at is not None for one in runtime.runs.list())
            return run, runtime.runs.get(row.id)
    return None


def sound(project: Path, found: tuple[Run, RunRow] | None) -> str:
    """How it ended, when all is as it must be."""
    counts, pids = acts(project)
    assert [key for key, times in counts.items() if times > 1 and key not in REPEATABLE] == []
    assert all(gone(pid) for pid in pids)
    places = AuditPlaces(load_project(project / "luthier.yaml"), os.environ)
    if (key := places.known_key()) is not None:
        assert verify(places.segments, key, places.checkpoints).faults == ()
    if found is None:
        return "nothing"
    run, row = found
    assert row.owner == ""
    if run.success:
        assert run.output == GIVES
        assert row.status == "ok"
        return "ok"
    assert run.error is not None
    assert (run.error["kind"], row.status) == ("unknown", "failed")
    return "unknown"


@pytest.mark.parametrize("last", range(ENTRIES + 2))
async def test_killed_behind_any_entry(project: Path, last: int, figure: Callable[[str], None]) -> None:
    assert (dying(project, last) == 0) == (last > ENTRIES)
    figure(f"killed behind entry {last} of {ENTRIES}: {sound(project, await gone_on(project))}")


@pytest.mark.parametrize("at", range(1, ACTS + 1))
async def test_killed_in_any_act(project: Path, at: int, figure: Callable[[str], None]) -> None:
    (project / "acts.kill").write_text(str(at))
    assert dying(project, 10_000) == -signal.SIGKILL
    figure(f"killed in act {at}: {sound(project, await gone_on(project))}")


@pytest.mark.parametrize("last", [6, 13, 24])
async def test_killed_with_its_record_in_postgresql(project: Path, last: int, postgres_url: str) -> None:
    write(project, postgres_url)
    assert dying(project, last) == -signal.SIGKILL
    assert sound(project, await gone_on(project)) in ("ok", "unknown")
