"""Stored secrets open with their key, in their row, whole; everything else is one readable error."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.connect import MemoryState
from luthier.errors import InputError, SecretError
from luthier.secrets import Secret, Vault, find_keys
from luthier.secrets.cipher import Key, KeyRing, read_keys
from luthier.secrets.keys import EnvironmentKeys, FileKeys

if TYPE_CHECKING:
    from collections.abc import Callable

CANARY = "stored-canary-0123"


class House:
    """A vault over a state in memory, with a key file in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = MemoryState()
        self.environ = {"XDG_STATE_HOME": str(folder)}

    @property
    def vault(self) -> Vault:
        return Vault(
            self.state, lambda id: find_keys(self.environ, id, project=self.folder), now=lambda: 1700.5
        )

    @property
    def file(self) -> Path:
        keys = self.vault.keys()
        assert isinstance(keys, FileKeys)
        return keys.path

    def rows(self) -> dict[str, Any]:
        return self.state.list("secrets")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def told(house: House, name: str = "git") -> str:
    """The error in place of a secret."""
    with pytest.raises(SecretError) as caught:
        house.vault.get(name)
    assert CANARY not in str(caught.value)
    assert caught.value.hint
    assert caught.value.message.startswith(f"the secret {name!r} cannot be read: ")
    return caught.value.message.partition(": ")[2]


def test_a_secret_is_kept_told_and_forgotten(house: House) -> None:
    assert house.vault.get("git") is None
    house.vault.set("git", Secret(CANARY))
    house.vault.set("a.b-c_1", Secret("ü\ud800\n"))
    assert house.vault.get("git") == Secret(CANARY)
    assert house.vault.get("a.b-c_1") == Secret("ü\ud800\n")
    assert [(kept.name, kept.at) for kept in house.vault.list()] == [("a.b-c_1", 1700.5), ("git", 1700.5)]
    house.vault.set("git", Secret("another-canary"))
    assert house.vault.get("git") == Secret("another-canary")
    assert house.vault.remove("git")
    assert not house.vault.remove("git")
    assert house.vault.get("git") is None


def test_nothing_of_it_is_in_the_store_and_the_key_is_elsewhere(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    stored = json.dumps({"rows": house.rows(), "id": house.state.list("vault")})
    assert CANARY not in stored
    assert base64.b64encode(CANARY.encode()).decode()[:16] not in stored
    key = house.file.read_text().strip()
    assert key not in stored
    assert len(base64.b64decode(key)) == 32
    assert stat.S_IMODE(house.file.stat().st_mode) == 0o600


def test_the_same_text_is_never_encrypted_the_same_way(house: House) -> None:
    nonces = set()
    for _ in range(50):
        house.vault.set("git", Secret(CANARY))
        nonces.add(house.rows()["git"]["nonce"])
    assert len(nonces) == 50
    assert {len(base64.b64decode(nonce)) for nonce in nonces} == {12}


def test_rows_that_changed_places_do_not_open(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    house.vault.set("mail", Secret("another-canary"))
    rows = house.rows()
    house.state.put("secrets", "git", rows["mail"])
    house.state.put("secrets", "mail", rows["git"])
    assert "moved here from another row" in told(house, "git")
    assert "moved here from another row" in told(house, "mail")


def cut(row: dict[str, Any], field: str, length: int) -> dict[str, Any]:
    return row | {field: base64.b64encode(base64.b64decode(row[field])[:length]).decode()}


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "cut off": (lambda row: cut(row, "data", 20), "does not open"),
    "cut to nothing": (lambda row: row | {"data": ""}, "does not open"),
    "a short nonce": (lambda row: cut(row, "nonce", 8), "does not open"),
    "no nonce": (lambda row: row | {"nonce": ""}, "does not open"),
    "no base64": (lambda row: row | {"data": "!"}, "row in the store is damaged"),
    "no data": (lambda row: {"key": row["key"]}, "row in the store is damaged"),
    "no mapping": (lambda _: "x", "row in the store is damaged"),
    "an unknown key": (lambda row: row | {"key": "0123"}, "encrypted with the key '0123', which is not in"),
    "a number for a key": (lambda row: row | {"key": 7}, "row in the store is damaged"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_row_is_told_of(house: House, damage: Callable[[Any], Any], said: str) -> None:
    house.vault.set("git", Secret(CANARY))
    house.state.put("secrets", "git", damage(house.rows()["git"]))
    assert said in told(house)
    assert [kept.name for kept in house.vault.list()] == ["git"]


@settings(deadline=None, max_examples=40)
@given(at=st.integers(min_value=0), bit=st.integers(min_value=0, max_value=7))
def test_every_bit_counts(at: int, bit: int) -> None:
    ring = KeyRing([Key.fresh()], where="here")
    sealed = ring.seal(CANARY, "secrets", "git", "data")
    data = bytearray(sealed.data)
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(SecretError, match="does not open"):
        ring.open(type(sealed)(sealed.key, sealed.nonce, bytes(data)), "secrets", "git", "data")


def test_another_key_under_the_same_id_does_not_open_it() -> None:
    ring, other = (KeyRing([Key.fresh()], where="here") for _ in range(2))
    sealed = ring.seal(CANARY, "secrets", "git", "data")
    forged = type(sealed)(other.newest.id, sealed.nonce, sealed.data)
    with pytest.raises(SecretError, match="does not open"):
        other.open(forged, "secrets", "git", "data")


def test_a_lost_key_file_is_named(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    house.file.unlink()
    assert f"which is not in {house.file}" in told(house)


def test_a_key_file_that_others_can_read_is_not_used(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    house.file.chmod(0o640)
    assert "can be read by others" in told(house)


def test_what_is_no_key_file_is_said(house: House, tmp_path: Path) -> None:
    house.vault.set("git", Secret(CANARY))
    house.file.write_text("c2hvcnQ=")
    with pytest.raises(SecretError, match="holds something that is no key") as caught:
        house.vault.get("git")
    assert "c2hvcnQ" not in str(caught.value)
    house.file.write_text("!!!")
    with pytest.raises(SecretError, match="holds something that is no key"):
        house.vault.get("git")
    house.file.unlink()
    house.file.mkdir()
    with pytest.raises(SecretError, match="cannot be used: it is not a regular file"):
        house.vault.get("git")
    beneath_a_file = tmp_path / "file"
    beneath_a_file.write_text("")
    with (
        pytest.raises(SecretError, match="cannot be used: Not a directory"),
        FileKeys(beneath_a_file / "x" / "keys").writing(),
    ):
        pass


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "-a", "é", "a" * 129])
def test_names_are_plain(house: House, name: str) -> None:
    with pytest.raises(InputError, match="is not a name of a secret"):
        house.vault.set(name, Secret(CANARY))


@pytest.mark.parametrize("text", ["", "x" * 65_537])
def test_a_secret_has_a_size(house: House, text: str) -> None:
    with pytest.raises(InputError, match="has 1 to 65536 characters"):
        house.vault.set("git", Secret(text))


def test_a_damaged_id_of_the_store_is_told(house: House) -> None:
    house.state.put("vault", "id", {"no": "id"})
    with pytest.raises(SecretError, match="id is damaged"):
        house.vault.set("git", Secret(CANARY))


def test_two_stores_have_keys_of_their_own(tmp_path: Path) -> None:
    one, other = House(tmp_path), House(tmp_path)
    assert one.file != other.file
    assert one.file.parent == tmp_path / "luthier" / "secrets"


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/luthier/secrets/1.key"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/luthier/secrets/1.key"),
        ({}, "/project/.luthier/secrets/1.key"),
    ],
)
def test_the_key_file_is_in_the_users_folder(environ: dict[str, str], place: str) -> None:
    keys = find_keys(environ, "1", project=Path("/project"))
    assert isinstance(keys, FileKeys)
    assert str(keys.path) == place


def test_a_key_in_the_environment_wins(house: House) -> None:
    house.environ["LUTHIER_SECRET_KEY"] = base64.b64encode(b"k" * 32).decode()
    house.vault.set("git", Secret(CANARY))
    assert house.vault.get("git") == Secret(CANARY)
    assert not (house.folder / "luthier").exists()
    assert isinstance(house.vault.keys(), EnvironmentKeys)
    house.environ["LUTHIER_SECRET_KEY"] = base64.urlsafe_b64encode(b"\xff" * 32).decode()
    assert "which is not in LUTHIER_SECRET_KEY" in told(house)
    house.environ["LUTHIER_SECRET_KEY"] = " , "
    with pytest.raises(SecretError, match="holds no key"):
        house.vault.set("git", Secret(CANARY))


def test_a_key_is_not_shown() -> None:
    ring = read_keys(base64.b64encode(b"k" * 32).decode(), where="here")
    assert repr(ring.newest) == f"Key({ring.newest.id})"
    assert ring.newest.id not in base64.b64encode(b"k" * 32).decode()


# Rotation.


def test_rotating_encrypts_everything_with_a_new_key_and_drops_the_old(house: House) -> None:
    for name in ("a", "b", "c"):
        house.vault.set(name, Secret(f"{CANARY}-{name}"))
    old, before = house.file.read_text(), house.rows()
    assert house.vault.rotate() == 3
    assert old.strip() not in house.file.read_text()
    assert house.file.read_text().count("\n") == 1
    after = house.rows()
    assert {row["key"] for row in after.values()}.isdisjoint({row["key"] for row in before.values()})
    assert all(house.vault.get(name) == Secret(f"{CANARY}-{name}") for name in "abc")
    assert [kept.at for kept in house.vault.list()] == [1700.5] * 3


def test_rotating_an_empty_store_makes_a_key(house: House) -> None:
    assert house.vault.rotate() == 0


class Interrupted(BaseException):
    """The process ends here."""


class Breaking:
    """A state whose process ends before or after the swap of that number."""

    def __init__(self, state: MemoryState, number: int, *, after: bool) -> None:
        self._state = state
        self._left = number
        self._after = after

    def get(self, kind: str, key: str) -> Any | None:
        return self._state.get(kind, key)

    def list(self, kind: str) -> dict[str, Any]:
        return self._state.list(kind)

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        self._left -= 1
        if self._left < 0 and not self._after:
            raise Interrupted
        done = self._state.swap(kind, key, expected, value)
        if self._left < 0:
            raise Interrupted
        return done


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_interrupted_anywhere_every_secret_opens_and_the_next_rotation_ends_it(
    house: House, number: int, *, after: bool
) -> None:
    for name in "abcd":
        house.vault.set(name, Secret(f"{CANARY}-{name}"))
    breaking = Breaking(house.state, number, after=after)
    vault = Vault(breaking, lambda id: find_keys(house.environ, id, project=house.folder))
    with pytest.raises(Interrupted):
        vault.rotate()
    assert all(house.vault.get(name) == Secret(f"{CANARY}-{name}") for name in "abcd")
    house.vault.set("e", Secret(f"{CANARY}-e"))
    assert house.vault.rotate() == 5
    assert all(house.vault.get(name) == Secret(f"{CANARY}-{name}") for name in "abcde")
    assert house.file.read_text().count("\n") == 1


def test_a_key_file_half_written_when_the_process_ended_is_no_hindrance(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    house.file.with_name(f"{house.file.name}.new").write_text("half")
    assert house.vault.rotate() == 1
    assert house.vault.get("git") == Secret(CANARY)


def test_a_secret_that_cannot_be_read_stops_the_rotation_and_no_key_is_dropped(house: House) -> None:
    house.vault.set("a", Secret(f"{CANARY}-a"))
    house.vault.set("b", Secret(f"{CANARY}-b"))
    house.state.put("secrets", "b", house.rows()["b"] | {"data": ""})
    with pytest.raises(SecretError, match="the secret 'b' cannot be read"):
        house.vault.rotate()
    assert house.vault.get("a") == Secret(f"{CANARY}-a")
    house.vault.remove("b")
    assert house.vault.rotate() == 1


class Busy(MemoryState):
    """A state in which somebody else is always quicker with the secret of that name."""

    def __init__(self, name: str, change: Callable[[MemoryState, int], None]) -> None:
        super().__init__()
        self.name, self.change, self.count = name, change, 0

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool:
        if key == self.name and expected is not None:
            self.count += 1
            self.change(self, self.count)
        return super().swap(kind, key, expected, value)


def test_a_secret_that_is_removed_or_set_meanwhile_is_as_they_left_it(house: House) -> None:
    house.state = Busy("a", lambda state, count: state.delete("secrets", "a") if count == 1 else None)
    house.vault.set("a", Secret(CANARY))
    house.vault.set("b", Secret(CANARY))
    house.vault.rotate()
    assert house.vault.get("a") is None
    assert house.vault.get("b") == Secret(CANARY)


def test_a_row_that_never_stands_still_is_given_up(house: House) -> None:
    house.state = Busy("a", lambda state, count: state.put("secrets", "a", {"n": count}))
    house.vault.set("a", Secret(CANARY))
    with pytest.raises(SecretError, match="changed by others all the time"):
        house.vault.set("a", Secret("another-canary"))


def test_keys_in_the_environment_are_rotated_by_who_sets_them(house: House) -> None:
    old, new = (base64.b64encode(letter * 32).decode() for letter in (b"o", b"n"))
    house.environ["LUTHIER_SECRET_KEY"] = old
    house.vault.set("git", Secret(CANARY))
    with pytest.raises(SecretError, match="no second key") as caught:
        house.vault.rotate()
    assert "LUTHIER_SECRET_KEY=NEW,OLD" in caught.value.hint
    house.environ["LUTHIER_SECRET_KEY"] = f"{new},{old}"
    assert house.vault.rotate() == 1
    house.environ["LUTHIER_SECRET_KEY"] = new
    assert house.vault.get("git") == Secret(CANARY)


def test_the_key_file_of_another_user_is_not_used(house: House) -> None:
    house.vault.set("git", Secret(CANARY))
    keys = FileKeys(house.file)
    if os.geteuid() == 0:
        os.chown(house.file, 65534, -1)
    else:
        house.file.chmod(0o604)
    with pytest.raises(SecretError, match=r"belongs to another user|can be read by others"):
        keys.ring()
