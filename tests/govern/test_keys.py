"""The key of the audit log: HMAC and Ed25519 as others compute them, one key however many come to make it."""

from __future__ import annotations

import hmac
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import AuditError, UnresolvedReferenceError
from luthier.govern import AuditKey, AuditPlaces
from luthier.govern.keys import is_signed, keep_key, key_of_text, read_key
from luthier.spec import read_project


@given(st.binary(), st.binary(min_size=1))
def test_a_line_has_the_mac_that_the_standard_library_computes(line: bytes, secret: bytes) -> None:
    chain = hmac.digest(secret, b"luthier audit chain", "sha256")
    assert AuditKey(secret).mac(line) == hmac.digest(chain, line, "sha256").hex()


@given(st.binary())
def test_a_signature_holds_for_its_text_and_its_key_alone(text: bytes) -> None:
    key, other = AuditKey(b"one"), AuditKey(b"other")
    signature = key.sign(text)
    assert is_signed(text, signature, key.public)
    assert not is_signed(text + b".", signature, key.public)
    assert not is_signed(text, signature, other.public)
    assert not is_signed(text, "no hex", key.public)


def test_a_key_shows_its_name_and_nothing_else() -> None:
    key = AuditKey(b"something that nobody may see")
    assert repr(key) == f"AuditKey({key.id})"
    assert "something" not in repr(key)
    assert key.id != AuditKey.fresh().id


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.key"
    assert read_key(path) is None
    key = keep_key(path)
    assert keep_key(path).id == key.id
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]  # nothing else was left


def test_processes_that_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from luthier.govern.keys import keep_key
        print("ready", flush=True)
        sys.stdin.readline()
        print(keep_key(Path(sys.argv[1])).id)
    """)
    command = [sys.executable, "-c", program, str(tmp_path / "audit.key")]
    several = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in several:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in several:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert len({process.communicate(timeout=30)[0] for process in several}) == 1


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64], ids=["empty", "short", "not text"])
def test_a_key_that_is_no_good_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.key"
    path.write_bytes(content)
    with pytest.raises(AuditError) as caught:
        keep_key(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_a_key_that_cannot_be_read_or_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(AuditError, match="cannot be read"):
        read_key(tmp_path / "folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditError, match="cannot be read"):
        keep_key(tmp_path / "file" / "audit.key")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):  # the one would never come, the other is no secret
        with pytest.raises(AuditError, match="not a regular file"):
            read_key(path)
    with pytest.raises(AuditError, match="cannot be kept"):
        keep_key(Path("/proc/self/fdinfo/audit.key"))


def test_a_key_that_somebody_chose_must_be_long() -> None:
    assert key_of_text("a" * 32 + "\n", where="here").id == AuditKey(b"a" * 32).id
    with pytest.raises(AuditError, match="has only 31 characters"):
        key_of_text("a" * 31, where="here")


def places(tmp_path: Path, audit: dict[str, str] | None = None, **environ: str) -> AuditPlaces:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    return AuditPlaces(read_project({"audit": audit} if audit else {}, root=root), environ)


def test_key_and_checkpoints_are_kept_in_the_users_own_folder(tmp_path: Path) -> None:
    by_home = places(tmp_path, HOME=str(tmp_path / "home"))
    assert by_home.key_file == tmp_path / "home" / ".local" / "state" / "luthier" / "audit.key"
    by_state = places(tmp_path, HOME=str(tmp_path / "home"), XDG_STATE_HOME=str(tmp_path / "state"))
    assert by_state.key_file == tmp_path / "state" / "luthier" / "audit.key"
    assert by_state.checkpoints.path.parent == tmp_path / "state" / "luthier" / "checkpoints"
    assert by_state.beside() == ()
    assert by_state.known_key() is None
    assert by_state.key().id == getattr(by_state.known_key(), "id", "")


def test_a_user_without_a_home_keeps_them_beside_the_log_and_that_is_told(tmp_path: Path) -> None:
    homeless = places(tmp_path)
    assert homeless.beside() == (homeless.key_file, homeless.checkpoints.path)
    assert homeless.key_file == tmp_path / "project" / ".luthier" / "audit.key"


def test_the_project_says_where_they_are(tmp_path: Path) -> None:
    said = places(tmp_path, {"key_file": "../keys/a.key", "checkpoints": "vouched.jsonl"}, HOME="/nowhere")
    assert said.key_file.resolve() == tmp_path / "keys" / "a.key"
    assert said.beside() == (tmp_path / "project" / "vouched.jsonl",)


def test_the_key_may_come_from_the_environment(tmp_path: Path) -> None:
    audit = {"key": "${env.AUDIT_KEY}"}
    chosen = places(tmp_path, audit, AUDIT_KEY="k" * 40, XDG_STATE_HOME=str(tmp_path / "state"))
    assert chosen.key().id == AuditKey(b"k" * 40).id
    assert chosen.known_key() is not None
    assert not chosen.key_file.exists()
    with pytest.raises(UnresolvedReferenceError, match="AUDIT_KEY"):
        places(tmp_path, audit).key()
