"""Where a project's audit log is written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock
from luthier.errors import StoreError
from luthier.govern import AuditKey, FileAudit, Intent, SegmentOpened, read_audit
from luthier.runtime.auditing import audit_log, audit_places
from luthier.spec import read_project
from luthier.store import SqlAudit

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.spec import Project

KEY = {"AUDIT_KEY": "k" * 32}


@pytest.mark.parametrize("sink", ["files", "store"])
def test_what_is_written_is_read_at_the_place_that_the_project_names(sink: str, tmp_path: Path) -> None:
    audit = {"sink": sink, "key": "${env.AUDIT_KEY}", "checkpoints": "checkpoints.jsonl"}
    project = read_project({"audit": audit, "store": "sqlite:///kept.db"}, root=tmp_path)
    log = audit_log(project, KEY, FakeClock(), None)
    assert isinstance(log, FileAudit if sink == "files" else SqlAudit)
    log.write(Intent(call="c", uri="mcp://a/b"))
    log.close()
    places = audit_places(project, KEY)
    assert len(read_audit(places.segments, AuditKey(b"k" * 32)).records) == 2
    assert (tmp_path / "kept.db").exists() == (sink == "store")


def opened_under(project: Project, *checks: object) -> str:
    """The hash of the policies in the first line of a segment."""
    log = audit_log(project, KEY, FakeClock(), None, checks)
    log.write(Intent(call="c", uri="mcp://a/b"))
    log.close()
    places = audit_places(project, KEY)
    opened = [
        record
        for record in read_audit(places.segments, AuditKey(b"k" * 32)).records
        if isinstance(record, SegmentOpened)
    ]
    return opened[-1].policies


def test_a_segment_names_the_policies_that_its_calls_are_judged_by(tmp_path: Path) -> None:
    rule = {"name": "a", "then": "deny", "when": {"tool": "mcp://mail/*"}}

    def hash_of(policies: Any, *checks: object, **more: Any) -> str:
        audit = {"key": "${env.AUDIT_KEY}", "checkpoints": "checkpoints.jsonl"}
        project = read_project({"audit": audit, "policies": policies, **more}, root=tmp_path)
        return opened_under(project, *checks)

    hashes = [
        hash_of([]),
        hash_of({"default": "deny"}),
        hash_of([rule]),
        hash_of([{**rule, "then": "ask"}]),
        hash_of([rule], opened_under),
    ]
    assert len(set(hashes)) == len(hashes)
    assert hash_of({"rules": [rule]}, environment="production") == hash_of([rule])  # said elsewhere


def test_a_project_without_a_store_cannot_keep_its_log_there() -> None:
    project = read_project({"audit": {"sink": "store"}})
    with pytest.raises(StoreError, match="this project has none"):
        audit_log(project, KEY, FakeClock(), None)
    with pytest.raises(StoreError, match="this project has none"):
        audit_places(project, KEY)
