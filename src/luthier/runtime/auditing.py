"""The audit log of a project: written into files or into its store, and read back from there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from luthier.errors import StoreError
from luthier.govern import AuditLog, AuditPlaces, FileAudit
from luthier.govern.digests import policies_digest
from luthier.store import SqlAudit, SqlSegments, database_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from luthier.clock import Clock
    from luthier.spec import Project
    from luthier.store import Database


def audit_log(
    project: Project,
    environ: Mapping[str, str],
    clock: Clock,
    database: Database | None,
    checks: Iterable[object] = (),
) -> AuditLog:
    """Where the gate writes. Nothing is made or opened before the first record. Raises StoreError.

    `checks` are the functions that judge besides the project's own policies.
    """
    places = AuditPlaces(project, environ)
    begin: Callable[..., AuditLog]
    if project.audit.sink == "files":
        begin = partial(FileAudit, places.log)
    else:
        begin = partial(SqlAudit, database or _store(project, environ))
    return begin(
        key=places.key,
        checkpoints=places.checkpoints,
        clock=clock,
        fsync=project.audit.fsync,
        policies=policies_digest(project.policies, checks),
    )


def audit_places(project: Project, environ: Mapping[str, str]) -> AuditPlaces:
    """Where the log is to be read. Raises StoreError."""
    if project.audit.sink == "files":
        return AuditPlaces(project, environ)
    return AuditPlaces(project, environ, segments=SqlSegments(_store(project, environ)))


def _store(project: Project, environ: Mapping[str, str]) -> Database:
    database = database_of(project, environ)
    if database is None:
        raise StoreError(
            "The audit log is to be kept in the store, and this project has none.",
            hint="Write `store: sqlite:///.luthier/luthier.db`, or `audit: {sink: files}`.",
        )
    return database
