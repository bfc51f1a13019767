"""An entry that is written is read as the same entry, field by field."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import SpecError
from luthier.spec import Auth, Breaker, Sandbox, ServerEntry, Tls, ToolFilter, read_entry, written
from luthier.spec.emit import members
from luthier.spec.load import load
from luthier.taint import Confidentiality, Integrity, Label, Source
from tests.spec.entries import ENTRIES


@given(entry=ENTRIES)
@settings(deadline=None)
def test_every_field_survives(entry: ServerEntry) -> None:
    assert read_entry(entry.id, written(entry)) == entry


@given(entry=ENTRIES)
@settings(max_examples=60, deadline=None)
def test_every_field_survives_in_a_file(entry: ServerEntry) -> None:
    text = "\n".join(members({"servers": {entry.id: written(entry)}}, 0))
    assert read_entry(entry.id, load(text).data["servers"][entry.id]) == entry


def test_what_is_as_usual_is_not_written() -> None:
    assert written(ServerEntry(id="git", command="uvx")) == {"command": "uvx"}
    assert written(ServerEntry(id="git", name="git", transport="auto", url="https://x.example")) == {
        "url": "https://x.example"
    }


def test_the_canonical_spelling_is_that_of_the_docs() -> None:
    entry = ServerEntry(
        id="git",
        name="Git",
        transport="http",
        url="https://x.example",
        timeout=15.0,
        tool_timeout=1.1,
        cache_ttl=0.0,
        auth=Auth(type="bearer", token="${env.TOKEN}"),
        allowed_agents=(),
        tools=ToolFilter(allow=("log",)),
        tls=Tls(),
        breaker=Breaker(enabled=False),
        trust=Label(Integrity.trusted, Confidentiality.private),
    )
    assert written(entry) == {
        "transport": "http",
        "name": "Git",
        "url": "https://x.example",
        "auth": {"type": "bearer", "token": "${env.TOKEN}"},
        "timeout_ms": 15000,
        "tool_timeout_ms": 1100,
        "cache_ttl_ms": 0,
        "allowed_agents": [],
        "tools": {"allow": ["log"]},
        "tls": {},
        "breaker": "off",
        "trust": "trusted",
    }


def test_parts_say_only_what_differs() -> None:
    entry = ServerEntry(
        id="git",
        command="uvx",
        breaker=Breaker(cooldown=0.5),
        sandbox=Sandbox(mode="auto"),
        trust=Label(Integrity.untrusted, Confidentiality.public),
    )
    assert written(entry) == {
        "command": "uvx",
        "breaker": {"cooldown_ms": 500},
        "sandbox": {"mode": "auto"},
        "trust": {"integrity": "untrusted", "confidentiality": "public"},
    }


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (ServerEntry(id="git"), "needs a `command` or a `url`"),
        (ServerEntry(id="no id", command="uvx"), "cannot be a server's id"),
        (ServerEntry(id="git", command="uvx", url="https://x.example"), "not both"),
        (
            ServerEntry(id="git", command="uvx", trust=Label(sources=frozenset([Source("a", "b")]))),
            "cannot name sources",
        ),
    ],
)
def test_what_could_not_be_read_back_is_not_written(entry: ServerEntry, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        written(entry)


@given(seconds=st.floats(1e-3, 1e7))
@settings(deadline=None)
def test_any_time_survives_to_the_last_digit_but_one(seconds: float) -> None:
    entry = ServerEntry(id="git", command="uvx", timeout=seconds)
    assert math.isclose(read_entry("git", written(entry)).timeout, seconds, rel_tol=1e-15)
