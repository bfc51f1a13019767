"""Runs an ensemble of the project in the working directory, durably, and is killed behind an entry.

usage: python -m tests.runtime.dying ENSEMBLE LAST [RUN]
With RUN, that one is gone on with instead.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from luthier import Runtime
from luthier.spec import load_project
from luthier.store import Database, database_of
from luthier.store.runs import SqlRuns
from luthier.testing import FaultyRuns


async def main(ensemble: str, last: int, resumed: str = "") -> None:
    project = load_project(Path("luthier.yaml"))
    database = database_of(project, {})
    assert isinstance(database, Database)
    runs = FaultyRuns(SqlRuns(database), last, kill=True)
    async with Runtime.open(project, runs=runs) as runtime:
        run = await (runtime.runs.resume(resumed) if resumed else runtime.run(ensemble, durable=True))
        assert run.success or run.suspended, run.error
    database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
