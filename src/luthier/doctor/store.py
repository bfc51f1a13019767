"""The store: whether it can be used, and is of this version. Nothing is made or migrated."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from luthier.doctor.finding import Case, Finding
from luthier.errors import LuthierError
from luthier.store import database_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def store(case: Case) -> Iterator[Finding]:
    try:
        database = database_of(case.project, case.environ)
        if database is None:
            yield Finding(name="database", status="off", said="this project keeps its state in memory")
            return
        try:
            found = database.standing()
        finally:
            database.close()
    except LuthierError as error:
        yield Finding(name="database", status="broken", said=error.message, fix=error.hint)
        return
    file = database.address.file
    if file is not None and (why := _unwritable(file)):
        fix = "Let this user write there, or name another place under `store`."
        yield Finding(name="database", status="broken", said=f"{file}: {why}", fix=fix)
        return
    said = {
        "new": "it is not there yet, and made when it is first written",
        "current": "it is there, and of this version",
        "older": "it is of an older version, and brought up to date when it is next used",
    }[found]
    yield Finding(name="database", status="ok", said=f"{database.address.shown}: {said}")


def _unwritable(file: Path) -> str:
    """Why it could not be written; a folder that is missing is made in the nearest one that is there."""
    place = next(path for path in (file, *file.parents) if path.exists())
    if place == file:
        return "" if os.access(file, os.W_OK) else "it may not be written"
    if not place.is_dir():
        return f"{place} is not a folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} may not be written"
