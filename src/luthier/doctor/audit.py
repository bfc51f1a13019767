"""The audit log: whether it can be written, and whether its key lies out of its reach."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from luthier.doctor.finding import Case, Finding
from luthier.govern.places import AuditPlaces

if TYPE_CHECKING:
    from collections.abc import Iterator


def audit(case: Case) -> Iterator[Finding]:
    places = AuditPlaces(case.project, case.environ)
    if case.project.audit.sink == "store":
        yield Finding(name="log", status="ok", said="in the store")
    else:
        place = next(path for path in (places.log, *places.log.parents) if path.exists())
        if os.access(place, os.W_OK | os.X_OK):
            yield Finding(name="log", status="ok", said=str(places.log))
        else:
            said, fix = (
                f"{place} may not be written: every call would be refused",
                "Let this user write there.",
            )
            yield Finding(name="log", status="broken", said=said, fix=fix)
    beside = places.beside()
    if beside:
        said = f"kept with the log, in reach of who may rewrite it: {', '.join(map(str, beside))}"
        fix = "Name places elsewhere: `audit: {key_file: …, checkpoints: …}`."
        yield Finding(name="key", status="warning", said=said, fix=fix)
    else:
        yield Finding(name="key", status="ok", said="key and checkpoints are kept apart from the log")
