"""A person's yes to an imported server: bound to the entry that was looked at, recorded before it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import Refused
from luthier.govern.decisions import written
from luthier.govern.records import Decided
from luthier.spec.hosts import digest
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from luthier.connect import ServerStore
    from luthier.govern.audit import AuditLog
    from luthier.spec import ServerEntry


def approve_server(
    entry: ServerEntry,
    *,
    audit: AuditLog,
    store: ServerStore | None,
    by: str,
    via: str,
    seen: str = "",
) -> ServerEntry:
    """The entry, approved and kept so. `seen`: the hash of what was looked at, where that is known.

    Raises Refused where it is another entry, StoreError where the store has another by now, AuditError.
    """
    found = digest(entry)
    if seen and seen != found:
        raise Refused(
            "approval",
            f"Server {entry.id!r} is not what was looked at: its hash is {found} now.",
            rule="approved",
            place=entry.place(),
            hint=f"See what it is: luthier servers show {entry.id}",
        )
    if entry.approved:
        return entry
    uri = str(ToolUri.mcp(entry.id, "*"))
    said = Decided(call="", uri=uri, approval=entry.id, request=found, decision="approved", by=by, via=via)
    approved = msgspec.structs.replace(entry, approved=True)
    with written(audit, said):
        if store is not None:
            store.replace(approved, was=entry)
    return approved
