"""The taint registry's shape of a label."""

from __future__ import annotations

from hypothesis import given

from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Integrity, Label, Source, TaintEntry, entries_of
from tests.taint.made import labels

WEB = UNTRUSTED.join(
    Label(sources=frozenset({Source("web", "fetch", "1"), Source("web", "fetch", "2"), Source("", "f", "3")}))
)


def test_each_tool_is_told_once_in_a_stable_order() -> None:
    custom, web = entries_of(WEB, agent="reviewer", at=1_000_000_000)
    assert web.to_json() == {
        "source": "mcp_tool",
        "tool_name": "fetch",
        "server_id": "web",
        "agent_id": "reviewer",
        "created_at": "2001-09-09T01:46:40Z",
    }
    assert (custom.source, custom.tool_name, custom.server_id) == ("custom_tool", "f", "")


def test_what_is_trusted_has_no_entries_wherever_it_came_from() -> None:
    assert entries_of(TRUSTED) == entries_of(SECRET) == ()
    assert entries_of(Label(sources=WEB.sources)) == ()


def test_what_is_not_trusted_and_names_no_source_is_derived() -> None:
    (entry,) = entries_of(UNTRUSTED, agent="reviewer", at=1_000_000_000)
    assert entry == TaintEntry(source="derived", agent_id="reviewer", created_at="2001-09-09T01:46:40Z")
    assert entries_of(UNTRUSTED) == (TaintEntry(source="derived", created_at="1970-01-01T00:00:00Z"),)


@given(labels, labels)
def test_it_is_there_for_what_is_tainted_only_and_a_join_loses_no_entry(a: Label, b: Label) -> None:
    joined = entries_of(a.join(b))
    assert bool(entries_of(a)) is (a.integrity is Integrity.untrusted)
    named = {(entry.server_id, entry.tool_name) for entry in joined}
    for entry in (*entries_of(a), *entries_of(b)):
        assert entry.source == "derived" or (entry.server_id, entry.tool_name) in named
