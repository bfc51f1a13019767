"""Runs an ensemble of the project in the working directory, durably, and is killed behind an entry.

usage: python -m tests.runtime.dying ENSEMBLE LAST [RUN] [--error | --once | --late]
With RUN, that one is gone on with instead. LAST is the last entry that the store takes. With an option nobody
is killed, but the store fails: for good behind that entry, or once, in that operation, before or after it is
done.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from luthier import Runtime
from luthier.errors import StoreError
from luthier.spec import load_project
from luthier.store import Database, database_of
from luthier.store.runs import SqlRuns
from luthier.testing import FaultyRuns
from tests.workflows.faulty import FaultyOnce

if TYPE_CHECKING:
    from luthier.workflows import RunStore

FAILED, UNKNOWN = 3, 4
"""The exit status where the store failed and the run could not go on, and where it ended as unknown."""


def store(database: Database, given: argparse.Namespace) -> RunStore:
    runs = SqlRuns(database)
    if given.once or given.late:
        return FaultyOnce(runs, given.last, late=given.late)
    return FaultyRuns(runs, given.last, kill=not given.error)


async def main(given: argparse.Namespace) -> int:
    project = load_project(Path("luthier.yaml"))
    database = database_of(project, {})
    assert isinstance(database, Database)
    runs = store(database, given)
    try:
        async with Runtime.open(project, runs=runs) as runtime:
            again = runtime.runs.resume(given.run) if given.run else None
            run = await (again or runtime.run(given.ensemble, durable=True))
    except StoreError:
        return FAILED
    finally:
        database.close()
    if run.error is not None and run.error["kind"] == "unknown":
        return UNKNOWN
    assert run.success or run.suspended, run.error
    return FAILED if isinstance(runs, FaultyOnce) and runs.struck else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("ensemble")
    parser.add_argument("last", type=int)
    parser.add_argument("run", nargs="?", default="")
    for way in ("--error", "--once", "--late"):
        parser.add_argument(way, action="store_true")
    sys.exit(asyncio.run(main(parser.parse_args())))
