"""Every store of state keeps one contract: values by kind and key, swapped in one move, with a revision."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from luthier.connect import AsideState, MemoryState, OwnState
from luthier.store import DEFAULT, Database, SqlState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.connect import StateStore


@pytest.fixture(params=["memory", "aside", "own", "sqlite", "postgres"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStore]:
    if request.param == "memory":
        yield MemoryState()
        return
    if request.param == "aside":
        yield AsideState(MemoryState(), ["git"])
        return
    if request.param == "own":
        yield OwnState(MemoryState(), "house")
        return
    url = DEFAULT if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    database = Database(url, tmp_path)
    yield SqlState(database)
    database.close()


def test_nothing_is_there_at_first(state: StateStore) -> None:
    assert state.get("pins", "git") is None
    assert state.list("pins") == {}


@pytest.mark.parametrize("value", [True, 0, 1.5, "", "ü\n\x00", [], {}, {"b": [1, {"a": None}], "a": "x"}])
def test_what_was_put_last_is_there(state: StateStore, value: object) -> None:
    state.put("pins", "git", "before")
    state.put("pins", "git", value)
    assert state.get("pins", "git") == value
    assert type(state.get("pins", "git")) is type(value)


def test_kinds_and_keys_do_not_touch_each_other(state: StateStore) -> None:
    state.put("pins", "git", 1)
    state.put("pins", "GIT", 2)
    state.put("eras", "git", 3)
    state.put("pins", "a%_b", 4)
    state.delete("pins", "git")
    assert state.list("pins") == {"GIT": 2, "a%_b": 4}
    assert state.list("eras") == {"git": 3}


def test_a_list_is_in_the_order_of_its_keys(state: StateStore) -> None:
    for key in ("b", "a", "ä", "B", "a-1", "a1"):
        state.put("pins", key, key)
    assert list(state.list("pins")) == sorted(["b", "a", "ä", "B", "a-1", "a1"])


def test_what_is_handed_out_is_the_callers_own(state: StateStore) -> None:
    value = {"tools": ["log"]}
    state.put("pins", "git", value)
    value["tools"].append("changed after")
    found = state.get("pins", "git")
    assert found == {"tools": ["log"]}
    found["tools"].append("changed too")
    assert state.get("pins", "git") == {"tools": ["log"]}


def test_none_stands_for_absence(state: StateStore) -> None:
    state.put("pins", "git", 1)
    state.put("pins", "git", None)
    state.delete("pins", "git")
    assert state.list("pins") == {}


def test_a_swap_needs_what_it_expects(state: StateStore) -> None:
    assert not state.swap("pins", "git", 1, 2)
    assert state.swap("pins", "git", None, {"b": 1, "a": 2})
    assert not state.swap("pins", "git", None, 3)
    assert not state.swap("pins", "git", {"b": 1}, None)
    assert state.swap("pins", "git", {"a": 2, "b": 1}, 3)
    assert state.swap("pins", "git", 3, None)
    assert state.swap("pins", "git", None, None)
    assert state.get("pins", "git") is None


def test_the_revision_grows_with_each_change_and_with_nothing_else(state: StateStore) -> None:
    seen = [state.revision()]
    state.put("pins", "git", 1)
    seen.append(state.revision())
    state.swap("pins", "git", 1, 2)
    seen.append(state.revision())
    state.delete("pins", "git")
    seen.append(state.revision())
    assert seen == sorted(set(seen))
    state.get("pins", "git")
    state.list("pins")
    state.swap("pins", "git", 1, 2)
    assert state.revision() == seen[-1]


def test_threads_lose_nothing(state: StateStore) -> None:
    def count() -> None:
        for _ in range(20):
            while True:
                there = state.get("counts", "all")
                if state.swap("counts", "all", there, (there or 0) + 1):
                    break

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.get("counts", "all") == 80


def test_what_is_kept_of_servers_set_aside_never_meets_what_is_known_of_the_real_ones() -> None:
    real = MemoryState()
    real.put("pins", "git", "real")
    real.put("pins", "web", "real")
    aside = AsideState(real, ["git"])
    assert (aside.get("pins", "git"), aside.get("pins", "web")) == (None, "real")
    for kind, key in (("pins", "git"), ("shown", "git"), ("eras", "git:12"), ("disabled", "server:git")):
        aside.put(kind, key, "mocked")
    assert aside.list("pins") == {"git": "mocked", "web": "real"}
    assert real.list("pins") == {"git": "real", "web": "real"}
    assert (real.list("shown"), real.list("eras")) == ({}, {})
    assert real.list("disabled") == {"server:git": "mocked"}


def test_projects_that_share_a_store_have_pins_of_their_own() -> None:
    shared = MemoryState()
    one, other = OwnState(shared, "one"), OwnState(shared, "one/other")
    assert one.swap("pins", "git", None, "mine")
    assert other.swap("pins", "git", None, "theirs")
    one.put("shown", "git", 1)
    assert (one.get("pins", "git"), other.get("pins", "git")) == ("mine", "theirs")
    assert (one.list("pins"), other.list("pins")) == ({"git": "mine"}, {"git": "theirs"})
    assert other.get("shown", "git") is None
    other.put("disabled", "server:git", 1)
    assert one.list("disabled") == {"server:git": 1}  # what is turned off is so for all
    one.delete("shown", "git")
    assert one.get("shown", "git") is None


def test_pins_of_the_time_before_are_read_until_there_are_newer_ones() -> None:
    shared = MemoryState()
    shared.put("pins", "git", "before")
    one, other = OwnState(shared, "one"), OwnState(shared, "other")
    assert (one.get("pins", "git"), one.list("pins")) == ("before", {"git": "before"})
    assert not one.swap("pins", "git", "something else", "new")
    assert other.swap("pins", "git", "before", "newer")
    assert (other.get("pins", "git"), other.list("pins")) == ("newer", {"git": "newer"})
    assert not other.swap("pins", "git", "before", "newest")
    assert shared.get("pins", "git") == "before"
