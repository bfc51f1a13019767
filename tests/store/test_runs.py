"""Every store of runs keeps one contract: rows and records, each entry once, and nothing half."""

from __future__ import annotations

import shutil
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
import pytest

from luthier.errors import RecordError, RunLostError, StoreError
from luthier.redaction import known
from luthier.secrets import find_keys
from luthier.store import DEFAULT, Database
from luthier.store.runs import SqlRuns
from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.workflows import Entry, MemoryRuns, RunRow, Waiting
from luthier.workflows.record import Failure, RunStarted, StepEnded, StepStarted
from luthier.workflows.runs import Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.secrets.keys import Keys
    from luthier.workflows import RunStore

ROW = RunRow(id="r-1", ensemble="greet", principal="operator", started_at=10.0, root="r-1")
FIRST = Entry(seq=1, at=10.0, data=RunStarted(run="r-1", ensemble="greet", plan="p"))
SECOND = Entry(seq=2, at=10.5, data=StepStarted(), step="a", attempt=1)
THIRD = Entry(
    seq=3,
    at=11.0,
    data=StepEnded(end="ok", output=Labelled({"é": "\ud800\0"}, UNTRUSTED)),
    step="a",
    attempt=1,
)


@contextmanager
def made(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[RunStore]:
    if kind == "memory":
        yield MemoryRuns()
        return
    url = DEFAULT if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with closing(Database(url, folder)) as database:
        yield SqlRuns(database)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunStore]:
    with made(request, request.param, tmp_path) as store:
        yield store


def test_a_new_store_has_none(store: RunStore) -> None:
    assert store.list(Wanted()) == ()
    assert store.row("r-1") is None
    assert store.read("r-1") == ()
    assert store.below("r-1") == ()


def test_what_was_put_down_comes_back_as_it_was(store: RunStore) -> None:
    waiting = (Waiting(step="a", what="hitl", expires_at=12.5), Waiting(step="b", what="input"))
    row = msgspec.structs.replace(
        ROW, waiting=waiting, durable=True, owner="host:1:2", beat_at=10.25, status="suspended", file="é.yaml"
    )
    store.create(row, [FIRST, SECOND, THIRD])
    assert store.row("r-1") == row
    assert store.read("r-1") == (FIRST, SECOND, THIRD)


def test_a_record_grows_and_its_row_changes_with_it(store: RunStore) -> None:
    store.create(ROW)
    store.append("r-1", [FIRST])
    assert store.row("r-1") == ROW
    done = msgspec.structs.replace(ROW, status="ok", ended_at=11.0)
    store.append("r-1", [SECOND, THIRD], row=done)
    store.append("r-1", [], row=done)
    assert store.row("r-1") == done
    assert store.read("r-1") == (FIRST, SECOND, THIRD)


def test_a_run_is_made_once(store: RunStore) -> None:
    store.create(ROW, [FIRST])
    with pytest.raises(RunLostError, match="goes on in another process"):
        store.create(msgspec.structs.replace(ROW, ensemble="other"), [SECOND])
    assert store.row("r-1") == ROW
    assert store.read("r-1") == (FIRST,)


def test_who_comes_second_with_an_entry_has_lost_the_run_and_changes_nothing(store: RunStore) -> None:
    store.create(ROW, [FIRST, SECOND])
    again = Entry(seq=2, at=99.0, data=StepStarted(), step="b", attempt=1)
    with pytest.raises(RunLostError) as caught:
        store.append("r-1", [again, THIRD], row=msgspec.structs.replace(ROW, owner="thief"))
    assert caught.value.facts() == {"run": "r-1", "owner": ""}
    assert store.row("r-1") == ROW
    assert store.read("r-1") == (FIRST, SECOND)


def test_of_many_at_once_one_goes_on(store: RunStore) -> None:
    store.create(ROW, [FIRST])
    won: list[int] = []
    together = threading.Barrier(8)

    def take(number: int) -> None:
        together.wait(10)
        with suppress(RunLostError):
            store.append("r-1", [SECOND], row=msgspec.structs.replace(ROW, owner=str(number)))
            won.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    row = store.row("r-1")
    assert row is not None
    assert [row.owner] == [str(number) for number in won]


def test_the_newest_are_listed_first_by_what_is_asked_for(store: RunStore) -> None:
    for number in range(1, 6):
        changes = {"status": "ok" if number % 2 else "failed", "ensemble": "greet" if number < 4 else "other"}
        at = 10.0 + number // 2  # two of them at a time
        id = f"r-{number}"
        store.create(msgspec.structs.replace(ROW, id=id, root=id, started_at=at, **changes))

    def ids(**asked: object) -> list[str]:
        return [row.id for row in store.list(Wanted(**asked))]  # type: ignore[arg-type]

    assert ids() == ["r-5", "r-4", "r-3", "r-2", "r-1"]
    assert ids(limit=2) == ["r-5", "r-4"]
    assert ids(limit=2, before="r-4") == ["r-3", "r-2"]
    assert ids(before="r-1") == []
    assert ids(before="nobody") == ids()
    assert ids(status="failed") == ["r-4", "r-2"]
    assert ids(ensemble="other", status="ok") == ["r-5"]
    inner = msgspec.structs.replace(ROW, id="r-5.x", root="r-5", started_at=12.5, ended_at=20.0)
    store.create(inner)
    assert ids() == ["r-5", "r-4", "r-3", "r-2", "r-1"], "what is inside another is not listed"
    assert ids(nested=True, limit=2) == ["r-5.x", "r-5"]
    assert ids(nested=True, ended_before=20.0) == []
    assert ids(nested=True, ended_before=20.5) == ["r-5.x"]


def test_a_run_that_has_ended_is_taken_away_with_all_inside_it(store: RunStore) -> None:
    done = msgspec.structs.replace(ROW, status="ok", ended_at=11.0)
    inner = msgspec.structs.replace(done, id="r-1.x", parent="r-1")
    other = msgspec.structs.replace(done, id="r-2", root="r-2")
    for row in (done, inner, other):
        store.create(row, [FIRST])
    assert store.prune("nobody") == 0
    assert store.prune("r-1") == 2
    assert store.list(Wanted(nested=True)) == (other,)
    assert [store.read(run) for run in ("r-1", "r-1.x", "r-2")] == [(), (), (FIRST,)]
    store.create(done, [FIRST])
    assert store.row("r-1") == done, "nothing of it is left in the way"


def test_a_run_of_which_anything_goes_on_is_left_whole(store: RunStore) -> None:
    done = msgspec.structs.replace(ROW, status="ok", ended_at=11.0)
    waits = msgspec.structs.replace(ROW, id="r-1.x", status="suspended")
    store.create(done, [FIRST])
    store.create(waits, [FIRST])
    assert store.prune("r-1") == 0
    assert store.list(Wanted(nested=True)) == (waits, done)
    assert store.read("r-1") == (FIRST,)


def test_the_runs_inside_a_run_are_found_by_it(store: RunStore) -> None:
    store.create(ROW)
    inner = msgspec.structs.replace(ROW, id="r-1.x", parent="r-1", root="r-1")
    store.create(inner)
    store.create(msgspec.structs.replace(ROW, id="r-2", root="r-2"))
    assert store.below("r-1") == (inner,)


def test_whoever_drives_a_run_sees_that_it_is_to_end(store: RunStore) -> None:
    store.create(ROW)
    store.create(msgspec.structs.replace(ROW, id="r-2"))
    assert store.stopped(["r-1", "r-2"]) == frozenset()
    store.stop("r-2")
    assert store.stopped(["r-1", "r-2"]) == {"r-2"}
    assert store.stopped(["r-1"]) == frozenset()
    store.append("r-2", [FIRST], row=msgspec.structs.replace(ROW, id="r-2", owner="x"))
    assert store.stopped(["r-2"]) == {"r-2"}


def test_a_sign_of_life_is_for_all_that_a_process_drives(store: RunStore) -> None:
    store.create(msgspec.structs.replace(ROW, owner="me"))
    store.create(msgspec.structs.replace(ROW, id="r-2", owner="other"))
    store.create(msgspec.structs.replace(ROW, id="r-3", owner="me", status="ok"))
    store.beat("me", 50.0)
    assert [row.beat_at for row in store.list(Wanted(nested=True))] == [0.0, 0.0, 50.0]


# Of databases only


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / ".luthier").write_text("in the way")
    with closing(Database(DEFAULT, tmp_path)) as database, pytest.raises(StoreError, match="cannot be used"):
        SqlRuns(database).create(ROW)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_row_that_was_tampered_with_is_told_of(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = DEFAULT if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with closing(Database(url, tmp_path)) as database:
        store = SqlRuns(database)
        store.create(ROW, [FIRST])
        with database.transaction() as transaction:
            transaction.do("UPDATE runs SET waiting = :text", {"text": "{"})
            transaction.do("UPDATE run_entries SET entry = :text", {"text": "{"})
        with pytest.raises(RecordError, match="row of the run r-1"):
            store.row("r-1")
        with pytest.raises(RecordError, match="line 1"):
            store.read("r-1")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_a_transaction_did_before_it_failed_is_undone(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with made(request, kind, tmp_path) as store:
        store.create(ROW, [FIRST, SECOND])
        with pytest.raises(RunLostError):
            store.append("r-1", [THIRD, SECOND])
        assert store.read("r-1") == (FIRST, SECOND)
        store.append("r-1", [THIRD])
        assert len(store.read("r-1")) == 3


# What is secret

TOKEN = "correct-horse"
WHOLE = Entry(seq=2, at=1.0, data=StepEnded(end="ok", output=Labelled(TOKEN, SECRET), label=SECRET), step="a")
PART = Labelled({"in/side": {"token": TOKEN}, "open": 1}, parts={"/in~1side/token": SECRET})
PARTS = Entry(seq=3, at=1.0, data=StepEnded(end="ok", output=PART), step="b")
FAILED = Failure(kind="code", message=f"no {TOKEN}")
ERROR = Entry(seq=4, at=1.0, data=StepEnded(end="failed", error=FAILED, label=SECRET), step="c")
SECRETS = [FIRST, WHOLE, PARTS, ERROR]


def keys(folder: Path) -> Keys:
    return find_keys({"XDG_STATE_HOME": str(folder / "state")}, "runs", project=folder)


def test_of_a_durable_run_what_is_secret_is_kept_encrypted(tmp_path: Path) -> None:
    known.add(TOKEN)
    with closing(Database(DEFAULT, tmp_path)) as database:
        store = SqlRuns(database, keys(tmp_path))
        store.create(msgspec.structs.replace(ROW, durable=True), SECRETS[:2])
        store.append("r-1", SECRETS[2:])
        assert store.read("r-1") == tuple(SECRETS)
        assert SqlRuns(database, keys(tmp_path)).read("r-1") == tuple(SECRETS)
        told = "".join(text for (text,) in database.rows("SELECT entry FROM run_entries"))
        assert TOKEN not in told
        assert told.count("sealed") == 3
        ended = SqlRuns(database).read("r-1")[1].data
        assert isinstance(ended, StepEnded)
        assert ended.output.value is None


def test_of_another_run_what_is_secret_is_not_kept(tmp_path: Path) -> None:
    with closing(Database(DEFAULT, tmp_path)) as database:
        store = SqlRuns(database, keys(tmp_path))
        store.create(ROW, SECRETS)
        told = "".join(text for (text,) in database.rows("SELECT entry FROM run_entries"))
        assert TOKEN not in told
        assert "sealed" not in told
        assert not (tmp_path / "state").exists()


def test_without_its_key_a_run_with_secrets_is_not_gone_on_with(tmp_path: Path) -> None:
    with closing(Database(DEFAULT, tmp_path)) as database:
        SqlRuns(database, keys(tmp_path)).create(msgspec.structs.replace(ROW, durable=True), SECRETS)
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(RecordError, match=r"what is secret .* cannot be read") as caught:
            SqlRuns(database, keys(tmp_path)).read("r-1")
        assert "Bring the key back" in caught.value.hint


def test_a_sealed_entry_opens_in_its_own_place_only(tmp_path: Path) -> None:
    with closing(Database(DEFAULT, tmp_path)) as database:
        store = SqlRuns(database, keys(tmp_path))
        store.create(msgspec.structs.replace(ROW, durable=True), SECRETS)
        store.create(msgspec.structs.replace(ROW, id="r-2", durable=True))
        with database.transaction() as transaction:
            transaction.do("UPDATE run_entries SET run = :run", {"run": "r-2"})
        with pytest.raises(RecordError, match="moved here from another row"):
            store.read("r-2")
