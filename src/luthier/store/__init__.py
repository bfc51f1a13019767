"""The database behind the ports: state and server entries in SQLite or PostgreSQL, with migrations."""

from luthier.store.audit import SqlAudit, SqlSegments
from luthier.store.database import DEFAULT, Database
from luthier.store.opening import database_of, servers_of, with_registered
from luthier.store.servers import SqlServers
from luthier.store.state import SqlState

__all__ = [
    "DEFAULT",
    "Database",
    "SqlAudit",
    "SqlSegments",
    "SqlServers",
    "SqlState",
    "database_of",
    "servers_of",
    "with_registered",
]
