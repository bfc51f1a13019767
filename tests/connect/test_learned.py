"""What was learned is remembered, shared between processes, and never at the price of a start."""

from __future__ import annotations

import fcntl
import json
import logging
import multiprocessing
from typing import TYPE_CHECKING

import pytest

from luthier.connect import FileLearned, Learned, Lesson, MemoryLearned

if TYPE_CHECKING:
    from pathlib import Path

MODERN = Lesson("2026-07-28")
OLD = Lesson("2024-11-05", "sse")


@pytest.fixture(params=["memory", "file"])
def learned(request: pytest.FixtureRequest, tmp_path: Path) -> Learned:
    return MemoryLearned() if request.param == "memory" else FileLearned(tmp_path / ".luthier" / "state.json")


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


def test_forgetting_what_is_not_known_writes_nothing(tmp_path: Path) -> None:
    FileLearned(tmp_path / "state.json").forget("git:1")
    assert list(tmp_path.iterdir()) == []


def test_the_file_outlives_the_process_and_keeps_sections_that_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"version": 1, "pins": {"git": "abc"}}))
    FileLearned(path).remember("git:1", MODERN)
    assert FileLearned(path).lesson("git:1") == MODERN
    assert json.loads(path.read_text())["pins"] == {"git": "abc"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"servers": '])
def test_a_broken_file_is_reported_put_aside_and_begun_afresh(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    learned = FileLearned(path)
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        assert learned.lesson("git:1") is None
    assert "state.json is broken" in caplog.text
    assert (tmp_path / "state.broken.json").read_bytes() == content
    learned.remember("git:1", MODERN)
    assert learned.lesson("git:1") == MODERN


@pytest.mark.parametrize(
    "content",
    [
        '{"servers": 7}',
        '{"servers": {"git:1": 7}}',
        '{"servers": {"git:1": null}}',
        '{"servers": {"git:1": {"era": 7}}}',
    ],
)
def test_a_file_of_another_shape_tells_nothing_and_can_be_written(content: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    learned = FileLearned(path)
    assert learned.lesson("git:1") is None
    learned.remember("git:1", Lesson("2025-11-25"))
    assert learned.lesson("git:1") == Lesson("2025-11-25")


def test_a_place_that_cannot_be_written_is_reported_and_costs_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    learned = FileLearned(tmp_path / "file" / "state.json")  # below a file, so not even root can write it
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        assert learned.lesson("git:1") is None
        learned.remember("git:1", MODERN)
    assert "cannot be written" in caplog.text


def test_a_directory_in_its_place_is_reported_and_costs_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.json"
    path.mkdir()
    learned = FileLearned(path)
    with caplog.at_level(logging.WARNING, "luthier.connect"):
        assert learned.lesson("git:1") is None
        learned.remember("git:1", MODERN)
    assert "cannot be read" in caplog.text
    assert "cannot be written" in caplog.text
    assert [found.name for found in tmp_path.iterdir() if found.suffix not in (".json", ".lock")] == []


def test_a_lock_that_another_process_holds_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.json"
    learned = FileLearned(path)
    with (tmp_path / "state.lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with caplog.at_level(logging.WARNING, "luthier.connect"):
            learned.remember("git:1", MODERN)
    assert "cannot be written" in caplog.text
    learned.remember("git:1", MODERN)
    assert learned.lesson("git:1") == MODERN


def _remember_many(path: Path, number: int) -> None:
    learned = FileLearned(path)
    for turn in range(50):
        learned.remember(f"server{number}:{turn}", MODERN)


def test_many_processes_never_leave_a_torn_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_remember_many, args=(path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    eras = {lesson["era"] for lesson in json.loads(path.read_text())["servers"].values()}
    assert eras == {"2026-07-28"}
    assert not list(tmp_path.glob("*.broken.json"))
    assert {found.name for found in tmp_path.iterdir()} == {"state.json", "state.lock"}
