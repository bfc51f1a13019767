"""Where tokens are kept: in memory, or in a file that its owner alone reads and that processes share."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import stat
from typing import TYPE_CHECKING

import pytest

from luthier.clock import FakeClock, settle
from luthier.secrets import Secret
from luthier.secrets.keys import FileKeys
from luthier.wire.auth import FileTokens, Grant, MemoryTokens, Tokens, TokenStore
from luthier.wire.auth.single import Single
from luthier.wire.auth.tokens import Registration, key

if TYPE_CHECKING:
    from pathlib import Path

GRANT = Grant(
    issuer="https://auth.example",
    token_endpoint="https://auth.example/token",
    registration=Registration(client_id="c", client_secret=Secret("client-canary"), method="none"),
    resource="https://lute.example/mcp",
    tokens=Tokens(
        access=Secret("access-canary"),
        refresh=Secret("refresh-canary"),
        expires_at=5.5,
        renew_at=4.5,
        scope="a",
    ),
    wanted="b",
)


def sealed(folder: Path) -> FileTokens:
    """Tokens in a file, encrypted with keys beside it."""
    return FileTokens(folder / ".luthier" / "tokens.json", keys=FileKeys(folder / "keys"))


@pytest.fixture(params=["memory", "file", "sealed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    if request.param == "sealed":
        return sealed(tmp_path)
    return MemoryTokens() if request.param == "memory" else FileTokens(tmp_path / ".luthier" / "tokens.json")


async def test_what_was_saved_last_is_loaded(store: TokenStore) -> None:
    assert await store.load("k") is None
    await store.save("k", GRANT)
    bare = Grant(issuer="i", token_endpoint="t", registration=Registration(client_id="c"))
    await store.save("other", bare)
    assert await store.load("k") == GRANT
    assert await store.load("other") == bare
    await store.save("k", bare)
    assert await store.load("k") == bare


async def test_one_at_a_time_holds_a_key(store: TokenStore) -> None:
    seen: list[str] = []

    async def hold(name: str, key: str) -> None:
        async with store.hold(key):
            seen.append(f"{name} in")
            await settle()
            seen.append(f"{name} out")

    await asyncio.gather(hold("a", "k"), hold("b", "k"))
    assert seen in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])


async def test_different_keys_are_held_at_the_same_time(store: TokenStore) -> None:
    async with store.hold("k"), asyncio.timeout(10), store.hold("other"):
        pass


async def test_who_fails_while_holding_lets_go(store: TokenStore) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.hold("k"):
            raise ZeroDivisionError
    async with asyncio.timeout(10), store.hold("k"):
        pass


def test_a_key_depends_on_every_fact_and_shows_none() -> None:
    facts = [("a", "b"), ("ab", ""), ("", "ab"), ("a", None), ("a",), ("b", "a")]
    keys = {key(*each) for each in facts}
    assert len(keys) == len(facts)
    assert all("canary" not in each for each in (key("canary"), *keys))


def test_nothing_that_prints_a_grant_shows_a_token() -> None:
    assert "canary" not in f"{GRANT} {GRANT!r} {GRANT.tokens} {GRANT.registration}"


# The file


async def test_the_file_is_for_its_owner_only_and_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / ".luthier" / "tokens.json"
    await FileTokens(path).save("k", GRANT)
    async with FileTokens(path).hold("k"):
        modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()}
    assert modes == {"tokens.json": 0o600, "tokens.lock": 0o600, "tokens-k.lock": 0o600}
    assert await FileTokens(path).load("k") == GRANT


async def test_what_a_killed_process_left_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    (tmp_path / "tokens.json.new").write_text("half")
    await FileTokens(path).save("k", GRANT)
    assert not (tmp_path / "tokens.json.new").exists()
    assert await FileTokens(path).load("k") == GRANT


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"version": 2}', b'{"grants": 7}'])
async def test_a_file_that_cannot_be_read_is_put_aside_when_it_is_written(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.json"
    path.write_bytes(content)
    store = FileTokens(path)
    with caplog.at_level(logging.WARNING, "luthier.wire.auth"):
        assert await store.load("k") is None
    assert "a new login is needed" in caplog.text
    assert path.read_bytes() == content
    await store.save("k", GRANT)
    assert (tmp_path / "tokens.broken.json").read_bytes() == content
    assert await store.load("k") == GRANT


@pytest.mark.parametrize("entry", [7, {}, {"issuer": 7}, {"tokens": {"access": ["canary"]}}])
async def test_an_entry_that_cannot_be_read_is_left_out_and_the_others_stay(
    entry: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.json"
    await FileTokens(path).save("k", GRANT)
    file = json.loads(path.read_text())
    file["grants"]["bad"] = entry
    path.write_text(json.dumps(file))
    assert await FileTokens(path).load("bad") is None
    assert "left out" in caplog.text
    assert "canary" not in caplog.text
    await FileTokens(path).save("more", GRANT)
    assert set(json.loads(path.read_text())["grants"]) == {"k", "bad", "more"}


async def test_a_secret_field_that_is_no_text_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    await FileTokens(path).save("k", GRANT)
    file = json.loads(path.read_text())
    file["grants"]["k"]["tokens"]["access"] = 7
    path.write_text(json.dumps(file))
    assert await FileTokens(path).load("k") is None


async def test_who_waits_too_long_for_another_process_gives_up(tmp_path: Path) -> None:
    clock = FakeClock()
    store = FileTokens(tmp_path / "tokens.json", clock)

    async def hold() -> None:
        async with store.hold("k"):
            pass

    with (tmp_path / "tokens-k.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = asyncio.ensure_future(hold())
        await clock.advance(89)
        assert not waiting.done()
        await clock.advance(2)
        with pytest.raises(TimeoutError):
            await waiting


async def test_a_lock_that_comes_free_is_taken(tmp_path: Path) -> None:
    clock = FakeClock()
    store = FileTokens(tmp_path / "tokens.json", clock)
    async with store.hold("k"):
        waiting = asyncio.ensure_future(store.hold("k").__aenter__())
        await clock.advance(1)
        assert not waiting.done()
    await clock.advance(1)
    await waiting


# One run for all


async def test_an_error_reaches_all_who_wait_and_the_next_tries_again() -> None:
    single: Single[int] = Single()
    runs = 0

    async def fails() -> int:
        nonlocal runs
        runs += 1
        await settle()
        raise ZeroDivisionError

    outcomes = await asyncio.gather(*(single.run(fails) for _ in range(5)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {ZeroDivisionError}
    assert runs == 1

    async def works() -> int:
        return 7

    assert await single.run(works) == 7


async def test_work_that_nobody_waits_for_any_more_ends_all_the_same() -> None:
    single: Single[int] = Single()
    ended = asyncio.Event()

    async def work() -> int:
        await settle()
        ended.set()
        raise ZeroDivisionError  # looked at by nobody, and no warning is made of it

    waiting = asyncio.ensure_future(single.run(work))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(10):
        await ended.wait()
    await settle()
    assert waiting.cancelled()


async def test_what_is_sealed_is_not_in_the_file_and_opens_with_its_key_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sealed(tmp_path).save("k", GRANT)
    await sealed(tmp_path).save("other", GRANT)
    path = tmp_path / ".luthier" / "tokens.json"
    assert b"canary" not in path.read_bytes()
    assert await sealed(tmp_path).load("k") == GRANT
    file = json.loads(path.read_bytes())
    file["grants"]["k"] = file["grants"]["other"]
    path.write_text(json.dumps(file))
    with caplog.at_level(logging.WARNING, "luthier.wire.auth"):
        assert await sealed(tmp_path).load("k") is None
    assert "moved here from another row" in caplog.text
    assert await sealed(tmp_path).load("other") == GRANT
    (tmp_path / "keys").unlink()
    assert await sealed(tmp_path).load("other") is None


async def test_what_was_kept_before_there_were_keys_is_read_and_sealed_when_it_is_saved(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".luthier" / "tokens.json"
    await FileTokens(path).save("k", GRANT)
    assert await sealed(tmp_path).load("k") == GRANT
    await sealed(tmp_path).save("k", GRANT)
    assert b"canary" not in path.read_bytes()


async def test_a_grant_that_cannot_be_sealed_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("no key")
    with pytest.raises(OSError, match=r"others|no key"):
        await sealed(tmp_path).save("k", GRANT)
    assert not (tmp_path / ".luthier" / "tokens.json").exists()
