"""Where the references of a project are looked up: its environment, its vault, and what lies around it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.connect import MemoryState, OwnState
from luthier.outside.keeping import namespace_of
from luthier.redaction import known, logger
from luthier.secrets import Sources, Vault, find_keys
from luthier.spec.credentials import is_credential_name, written_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.connect import StateStore
    from luthier.spec import Project
    from luthier.store import Database

_log = logger("luthier.runtime")


def state_of(project: Project, environ: Mapping[str, str]) -> StateStore:
    """The state of a project for a command that needs nothing else of it."""
    from luthier.store import database_of

    database = database_of(project, environ)
    return MemoryState() if database is None else state_in(database, project)


def state_in(database: Database, project: Project) -> StateStore:
    """The state of a project in its database. Where others may keep theirs too, its pins are its own.

    A project without a file and a name is nobody to keep pins for: its servers are those of the store.
    """
    from luthier.store import SqlState

    state, name = SqlState(database), project.unused.get("name")
    file = database.address.file
    if file is not None and Path(os.path.normpath(file)).is_relative_to(os.path.normpath(project.root)):
        return state
    if project.file is None and not name:
        return state
    return OwnState(state, namespace_of(project.root, name))


def vault_of(project: Project, environ: Mapping[str, str], state: StateStore) -> Vault:
    """The stored secrets of a project."""
    return Vault(state, lambda store: find_keys(environ, store, project=project.root))


def sources_of(project: Project, environ: Mapping[str, str], state: Callable[[], StateStore]) -> Sources:
    """The given environment over the names of the project's `env_file`, and the stores of secrets behind.

    `state` is asked for when the first stored secret is.
    """
    names = project.environ(environ)
    for name in project.expose_env:
        if is_credential_name(name):
            known.add(names.get(name, ""))
    return Sources(
        names,
        root=project.root,
        vault=lambda: vault_of(project, names, state()),
        strict=project.environment == "production",
    )


def warn_of_written_credentials(project: Project) -> None:
    """Say once, when a project is loaded, that secrets stand in its file, and make them known."""
    places = []
    for entry in project.servers.values():
        for keys, _, value in written_credentials(entry):
            known.add(value)
            places.append(entry.place(*keys))
    if places and project.environment != "production":  # there such servers do not start, which says it
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        _log.warning("A secret stands in the file: %s%s. Production refuses that.", places[0], more)
