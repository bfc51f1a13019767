"""The servers: what `luthier check` says of each. Nothing is started; `luthier servers test` does that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.doctor.finding import Case, Finding
from luthier.spec.check_project import check_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.errors import Fault


def servers(case: Case) -> Iterator[Finding]:
    for entry in case.project.servers.values():
        if entry.disabled:
            yield Finding(name=entry.id, status="off", said="it is disabled")
            continue
        alone = msgspec.structs.replace(case.project, servers={entry.id: entry})
        faults = check_project(alone, case.environ)
        if not faults:
            yield Finding(
                name=entry.id, status="ok", said=f"it can be tried: luthier servers test {entry.id}"
            )
        yield from (_finding(entry.id, fault) for fault in faults)
    for id, error in case.project.broken.items():
        yield Finding(name=id, status="broken", said=error.message)
    if not case.project.servers and not case.project.broken:
        fix = "luthier servers add, or luthier servers import FILE"
        yield Finding(name="registry", status="off", said="no server is registered", fix=fix)


def _finding(id: str, fault: Fault) -> Finding:
    place = f"{fault.file}:{fault.line}: " if fault.file and fault.line else ""
    stops = not fault.warning or "will not start" in fault.message
    return Finding(
        name=id,
        status="broken" if stops else "warning",
        said=f"{place}{fault.message}",
        fix=fault.suggestion,
    )
