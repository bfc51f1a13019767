"""Drills with real processes: one dies or fails in a project, and another goes on with its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.govern import AuditPlaces, verify
from luthier.spec import load_project
from luthier.store import DEFAULT
from luthier.workflows.record import RunEnded
from tests.ended import gone
from tests.runtime.dying import FAILED, UNKNOWN
from tests.workflows.house import read
from tests.workflows.references import CHILD

if TYPE_CHECKING:
    from luthier.workflows import RunRow

BOUND = 40.0
SERVER = Path(__file__).parent / "counting_server.py"
ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


def made(project: Path, *ensembles: str, store: str = DEFAULT, more: str = "") -> Path:
    """A project with these ensembles and a server that counts."""
    (project / "ensembles").mkdir(parents=True)
    for text in (*ensembles, CHILD):
        (project / "ensembles" / f"{read(text).name}.yaml").write_text(text)
    command = f"command: python, args: [{SERVER}, {project / 'acts'}]"
    entry = f"{{{command}, tools: {{idempotent: [look]}}}}"
    (project / "luthier.yaml").write_text(f"store: {store}\nmcpServers:\n  s: {entry}\n{more}")
    return project


def dying(project: Path, ensemble: str, last: int, *more: str) -> int:
    """The exit status of a process that runs it and is killed behind that many entries, or as `more` says."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.dying", ensemble, str(last), *more],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode in (0, KILLED, FAILED, UNKNOWN), done.stderr
    return done.returncode


def acts(project: Path) -> tuple[Counter[str], list[int]]:
    """What was done, and by which processes. What may be done as often as one likes begins with `~`."""
    file = project / "acts"
    lines = file.read_text().splitlines() if file.exists() else []
    pids = [int(line.removeprefix("pid ")) for line in lines if line.startswith("pid ")]
    return Counter(line for line in lines if not line.startswith("pid ")), pids


async def gone_on(project: Path) -> tuple[RunRow, RunEnded] | None:
    """The run, gone on with here if it has not ended; None where nothing of it was ever written."""
    async with Runtime.open(project / "luthier.yaml") as runtime:
        roots = runtime.runs.list()
        if not roots:
            return None
        (row,) = roots
        if row.ended_at is None:
            assert row.owner == "" or runtime.runs.interrupted(row)
            run = await runtime.runs.resume(row.id)
            assert runtime.runs.record(row.id) == run.record
        for one in runtime.runs.list(nested=True):
            assert one.ended_at is not None
            record = runtime.runs.record(one.id)
            assert [entry.seq for entry in record] == [*range(1, len(record) + 1)]
            assert [isinstance(entry.data, RunEnded) for entry in record].index(True) == len(record) - 1
        ended = runtime.runs.record(row.id)[-1].data
        assert isinstance(ended, RunEnded)
        return runtime.runs.get(row.id), ended


def sound(project: Path, found: tuple[RunRow, RunEnded] | None, output: Any) -> str:
    """How it ended, when all is as it must be: nothing twice, no orphan, record and audit whole."""
    counts, pids = acts(project)
    assert [key for key, times in counts.items() if times > 1 and not key.startswith("~")] == []
    assert all(gone(pid, BOUND) for pid in pids)
    places = AuditPlaces(load_project(project / "luthier.yaml"), os.environ)
    if (key := places.known_key()) is not None:
        assert verify(places.segments, key, places.checkpoints).faults == ()
    if found is None:
        assert not counts
        return "nothing"
    row, ended = found
    assert row.owner == ""
    if ended.success:
        assert ended.output.value == output
        assert row.status == "ok"
        return "ok"
    assert ended.error is not None
    assert (ended.error.kind, row.status) == ("unknown", "failed")
    return "unknown"
