"""Which stores a project has: its database, and where its servers are registered."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from luthier.connect.stores import YamlServers
from luthier.redaction import known
from luthier.secrets import expand
from luthier.spec.read_project import STORE_PASSWORD
from luthier.store.database import Database
from luthier.store.servers import SqlServers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect import ServerStore
    from luthier.spec import Project


def database_of(project: Project, environ: Mapping[str, str]) -> Database | None:
    """The database that `store` names; None for a project that lives in memory. Nothing is opened yet.

    Raises StoreError for a URL that cannot be read, UnresolvedReferenceError for a variable that is not set.
    """
    if not project.store:
        return None
    url = expand(project.store, project.environ(environ), place=project.origin.place("store"))
    if password := STORE_PASSWORD.search(url):
        known.add(password["password"])
        known.add(unquote(password["password"]))
    return Database(url, project.root)


def servers_of(project: Project, environ: Mapping[str, str]) -> ServerStore | None:
    """Where the project's servers are registered: its file, else its database if there is one."""
    if project.file is not None:
        return YamlServers(project.file)
    database = _registry(project, environ)
    return None if database is None else SqlServers(database)


def with_registered(project: Project, environ: Mapping[str, str]) -> Project:
    """The project with the servers of the registry, for one that has no file and names none itself."""
    if project.file is not None or project.servers:
        return project
    database = _registry(project, environ)
    if database is None:
        return project
    with closing(database):
        found = SqlServers(database).load()
    return msgspec.structs.replace(project, servers=found.entries, broken=found.broken)


def _registry(project: Project, environ: Mapping[str, str]) -> Database | None:
    """The project's database, if there is one."""
    database = database_of(project, environ)
    return None if database is None or not database.exists() else database
