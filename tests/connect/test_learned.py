"""What was learned is remembered, shared between processes, and never at the price of a start."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from luthier.connect import Learned, Lesson, MemoryLearned, MemoryState, StoredLearned, take_over
from luthier.store import Database, SqlState

if TYPE_CHECKING:
    from pathlib import Path

MODERN = Lesson("2026-07-28")
OLD = Lesson("2024-11-05", "sse")


@pytest.fixture(params=["memory", "store"])
def learned(request: pytest.FixtureRequest) -> Learned:
    return MemoryLearned() if request.param == "memory" else StoredLearned(MemoryState())


def test_nothing_is_known_at_first(learned: Learned) -> None:
    assert learned.lesson("git:1") is None


def test_what_was_remembered_last_is_known(learned: Learned) -> None:
    learned.remember("git:1", Lesson("2025-11-25"))
    learned.remember("git:1", MODERN)
    learned.remember("time:1", OLD)
    assert learned.lesson("git:1") == MODERN
    assert learned.lesson("time:1") == OLD
    assert learned.lesson("git:2") is None


def test_what_was_forgotten_is_not_known_and_the_rest_is(learned: Learned) -> None:
    learned.remember("git:1", MODERN)
    learned.remember("time:1", OLD)
    learned.forget("git:1")
    learned.forget("git:2")
    assert learned.lesson("git:1") is None
    assert learned.lesson("time:1") == OLD


def test_what_is_saved_outlives_the_process_and_the_rest_does_not() -> None:
    state = MemoryState()
    first = StoredLearned(state)
    first.remember("git:1", MODERN)
    assert StoredLearned(state).lesson("git:1") is None
    first.save()
    second = StoredLearned(state)
    assert second.lesson("git:1") == MODERN
    second.forget("git:1")
    assert StoredLearned(state).lesson("git:1") == MODERN
    second.save()
    assert StoredLearned(state).lesson("git:1") is None


def test_what_is_in_the_store_already_is_not_written_again() -> None:
    state = MemoryState()
    state.put("eras", "git:1", {"era": "2026-07-28", "transport": ""})
    before = state.revision()
    learned = StoredLearned(state)
    learned.remember("git:1", MODERN)
    learned.forget("time:1")
    learned.save()
    learned.save()
    assert state.revision() == before


@pytest.mark.parametrize("value", [7, {"era": 7}, [], {}])
def test_a_value_of_another_shape_tells_nothing_and_is_replaced(value: object) -> None:
    state = MemoryState()
    state.put("eras", "git:1", value)
    learned = StoredLearned(state)
    assert learned.lesson("git:1") is None
    learned.remember("git:1", MODERN)
    learned.save()
    assert StoredLearned(state).lesson("git:1") == MODERN


def test_a_store_that_cannot_be_used_is_reported_and_costs_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.db").write_text("no database", encoding="utf-8")
    learned = StoredLearned(SqlState(Database("sqlite:///x.db", tmp_path)))
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        assert learned.lesson("git:1") is None
        learned.remember("git:1", MODERN)
        learned.save()
    assert learned.lesson("git:1") == MODERN
    assert "cannot be read: they are asked again" in caplog.text
    assert "cannot be kept: the next start asks again" in caplog.text


# The file of earlier versions


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def test_the_file_of_earlier_versions_is_taken_over_once(old: Path, tmp_path: Path) -> None:
    lessons = {"git:1": {"era": "2025-11-25", "transport": ""}, "time:1": {"era": "2024-11-05"}}
    old.write_text(json.dumps({"version": 1, "servers": lessons}), encoding="utf-8")
    old.with_suffix(".lock").touch()
    state = MemoryState()
    state.put("eras", "git:1", {"era": "2026-07-28"})
    for _ in range(2):
        take_over(old, state)
    assert StoredLearned(state).lesson("git:1") == MODERN
    assert StoredLearned(state).lesson("time:1") == Lesson("2024-11-05")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"servers": 7}', b'{"servers": {"a": 7}}']
)
def test_a_broken_file_is_reported_and_put_aside(
    content: bytes, old: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old.write_bytes(content)
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        take_over(old, MemoryState())
    assert "state.json is broken" in caplog.text
    assert [file.name for file in tmp_path.iterdir()] == ["state.broken.json"]


def test_a_store_that_cannot_take_it_over_leaves_the_file(
    old: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old.write_text('{"servers": {"git:1": {"era": "2025-11-25"}}}', encoding="utf-8")
    (tmp_path / "x.db").write_text("no database", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        take_over(old, SqlState(Database("sqlite:///x.db", tmp_path)))
    assert "cannot be taken over into the store" in caplog.text
    assert old.exists()


def test_where_there_is_no_folder_there_is_nothing_to_take_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    take_over(tmp_path / "file" / "state.json", MemoryState())
    assert caplog.text == ""
