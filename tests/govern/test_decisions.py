"""Decisions and the log: written down before they count, and taken back where they were not kept."""

from __future__ import annotations

import pytest

from luthier.errors import AuditError, StoreError
from luthier.govern import Decided, MemoryAudit, Switched
from luthier.govern.decisions import written

YES = Decided(call="", uri="mcp://git/*", approval="git", request="ab", decision="approved", by="me")
OFF = Switched(what="server:git", to="disabled", by="me")


def test_what_is_kept_has_one_line() -> None:
    audit = MemoryAudit()
    with written(audit, YES, OFF):
        assert audit.records == [YES, OFF]
    assert audit.records == [YES, OFF]


def test_what_is_not_kept_has_a_second_line_that_says_so() -> None:
    audit = MemoryAudit()
    with pytest.raises(StoreError), written(audit, YES, OFF):
        raise StoreError("the disk is full")
    _, _, again, off = audit.records
    assert isinstance(again, Decided)
    assert isinstance(off, Switched)
    assert (again.uri, again.request, again.decision) == ("mcp://git/*", "ab", "not kept")
    assert (off.what, off.to) == ("server:git", "not kept")


def test_what_cannot_be_written_down_is_not_even_tried() -> None:
    tried = False
    with pytest.raises(AuditError), written(MemoryAudit(fails="switched"), YES, OFF):
        tried = True
    assert not tried
