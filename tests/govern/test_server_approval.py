"""A person's yes to a server: for the entry that was looked at, written down first, once."""

from __future__ import annotations

import msgspec
import pytest

from luthier.connect import MemoryServers
from luthier.errors import AuditError, NotFoundError, Refused, StoreError
from luthier.govern import Decided, MemoryAudit
from luthier.govern.server_approval import approve_server
from luthier.spec import ServerEntry
from luthier.spec.hosts import digest

GIT = ServerEntry(id="git", name="git", command="uvx", args=("mcp-server-git",), approved=False)
OTHER = msgspec.structs.replace(GIT, args=("other",))


def approve(
    entry: ServerEntry, store: MemoryServers | None, audit: MemoryAudit, seen: str = ""
) -> ServerEntry:
    return approve_server(entry, audit=audit, store=store, by="operator", via="cli", seen=seen)


def test_the_entry_is_kept_approved_and_the_decision_is_recorded_with_its_hash() -> None:
    store, audit = MemoryServers([GIT]), MemoryAudit()
    approved = approve(GIT, store, audit, digest(GIT))
    assert approved == msgspec.structs.replace(GIT, approved=True)
    assert store.get("git") == approved
    (record,) = audit.records
    assert isinstance(record, Decided)
    assert (record.uri, record.request, record.decision) == ("mcp://git/*", digest(GIT), "approved")
    assert (record.by, record.via) == ("operator", "cli")


def test_another_entry_than_the_one_that_was_looked_at_is_refused_and_nothing_is_written() -> None:
    store, audit = MemoryServers([OTHER]), MemoryAudit()
    with pytest.raises(Refused, match="not what was looked at") as caught:
        approve(OTHER, store, audit, digest(GIT))
    assert caught.value.refusal_kind == "approval"
    assert audit.records == []
    assert store.get("git") == OTHER


def test_an_entry_that_changed_in_the_store_meanwhile_stays_unapproved() -> None:
    store, audit = MemoryServers([OTHER]), MemoryAudit()
    with pytest.raises(StoreError, match="changed meanwhile"):
        approve(GIT, store, audit)
    first, second = audit.records
    assert isinstance(first, Decided)
    assert second == msgspec.structs.replace(first, decision="not kept")
    assert store.get("git") == OTHER
    with pytest.raises(NotFoundError):
        approve(GIT, MemoryServers(), audit)


def test_what_cannot_be_recorded_is_not_approved() -> None:
    store = MemoryServers([GIT])
    with pytest.raises(AuditError):
        approve(GIT, store, MemoryAudit(fails="decided"))
    assert store.get("git") == GIT


def test_an_entry_that_is_approved_already_is_left_as_it_is() -> None:
    approved, audit = msgspec.structs.replace(GIT, approved=True), MemoryAudit()
    assert approve(approved, None, audit, digest(GIT)) is approved
    assert audit.records == []
