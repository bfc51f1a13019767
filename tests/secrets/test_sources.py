"""References to stored secrets are read when they are used, where they may stand, or say why not."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from luthier.connect import MemoryState
from luthier.errors import SecretError, StoreError, UnresolvedReferenceError
from luthier.redaction import redact
from luthier.secrets import Secret, Sources, Vault, expand, find_keys
from luthier.secrets.cipher import Key

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "sourced-canary-0123"
PLACE = "luthier.yaml:3:5 (mcpServers.git.auth.token)"


def told(text: str, sources: Sources) -> UnresolvedReferenceError:
    with pytest.raises(UnresolvedReferenceError) as caught:
        expand(text, sources, place=PLACE, secrets=True)
    error = caught.value
    assert error.place == PLACE
    assert error.message.startswith(f"{PLACE}: {error.reference} cannot be resolved: ")
    assert error.message.endswith(".")
    assert CANARY not in f"{error} {error!r}"
    return error


def a_file(tmp_path: Path, content: bytes | str = CANARY, mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(MemoryState(), lambda id: find_keys({"HOME": str(tmp_path)}, id, project=tmp_path))


def test_it_is_the_environment_to_who_asks_only_for_names() -> None:
    sources = Sources({"A": "1", "B": "2"})
    assert dict(sources) == {"A": "1", "B": "2"}
    assert expand("${A}${B}${C:-3}", sources, place="") == "123"
    assert repr(sources) == "Sources(2 names)"
    assert "1" not in repr(sources)


def test_a_secret_of_the_vault_stands_for_its_name(vault: Vault) -> None:
    vault.set("git", Secret(CANARY))
    sources = Sources({}, vault=lambda: vault)
    assert expand("Bearer ${secret:git}", sources, place=PLACE, secrets=True) == f"Bearer {CANARY}"
    error = told("${secret:mail}", sources)
    assert "there is no secret 'mail' in the store" in error.message
    assert error.hint == "Set it: luthier secrets set mail"
    assert "there is no secret" in told("${secret:git}", Sources({})).message


def test_what_is_wrong_with_the_vault_is_said(tmp_path: Path) -> None:
    class Down(MemoryState):
        def get(self, kind: str, key: str) -> object:  # noqa: ARG002  (the port's)
            raise StoreError("The store cannot be read: it is down.", hint="Start it.")

    down = Vault(Down(), lambda id: find_keys({}, id, project=tmp_path))
    error = told("${secret:git}", Sources({}, vault=lambda: down))
    assert "it is down" in error.message
    assert error.hint == "Start it."


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (CANARY, CANARY),
        (f"{CANARY}\n", CANARY),
        (f"{CANARY}\r\n", CANARY),
        (f"{CANARY}\n\n", f"{CANARY}\n"),
        (f" {CANARY} ", f" {CANARY} "),
        ("${env.HOME}", "${env.HOME}"),
    ],
)
def test_a_file_stands_for_its_text_without_the_last_line_break(
    content: str, text: str, tmp_path: Path
) -> None:
    a_file(tmp_path, content)
    sources = Sources({"HOME": "/root"}, root=tmp_path)
    assert expand("${file:token}", sources, place=PLACE, secrets=True) == text
    assert expand(f"${{file:{tmp_path}/token}}", sources, place=PLACE, secrets=True) == text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8 text"),
        ("x" * 65_537, "is larger than 64 KiB"),
    ],
)
def test_a_file_that_holds_no_secret_is_told_of(content: str | bytes, said: str, tmp_path: Path) -> None:
    a_file(tmp_path, content)
    assert said in told("${file:token}", Sources({}, root=tmp_path)).message


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sources = Sources({}, root=tmp_path)
    assert "is not a regular file" in told("${file:pipe}", sources).message
    assert "is not a regular file" in told("${file:.}", sources).message
    assert "No such file" in told("${file:nothing}", sources).message
    assert "is not the name of a file" in told("${file:a\0b}", sources).message
    assert "is not the name of a file" in told("${file:~nobody-here/x}", sources).message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_can_read_is_warned_of_once_and_refused_in_production(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_file(tmp_path, mode=mode)
    sources = Sources({}, root=tmp_path)
    with caplog.at_level(logging.WARNING, "luthier.secrets"):
        for _ in range(3):
            assert expand("${file:token}", sources, place=PLACE, secrets=True) == CANARY
    assert caplog.text.count("can be read by others") == 1
    assert CANARY not in caplog.text
    error = told("${file:token}", Sources({}, root=tmp_path, strict=True))
    assert f"can be read by others (mode {mode:04o}), which is not allowed in production" in error.message
    assert error.hint == "Run: chmod 600 token"


def test_a_file_of_another_user_is_refused_in_production(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(a_file(tmp_path), 65534, -1)
    else:  # only root gives files away
        a_file(tmp_path, mode=0o604)
    error = told("${file:token}", Sources({}, root=tmp_path, strict=True))
    assert "belongs to another user" in error.message or "by others" in error.message


def test_secrets_may_stand_only_where_it_is_said(tmp_path: Path) -> None:
    a_file(tmp_path)
    with pytest.raises(UnresolvedReferenceError, match="cannot be resolved here") as caught:
        expand("${file:token}", Sources({}, root=tmp_path), place=PLACE)
    assert "headers, env, auth and secret" in caught.value.hint


def test_what_is_read_is_known_to_the_redactor(tmp_path: Path) -> None:
    a_file(tmp_path, "in-a-file-canary")
    expand("${file:token}", Sources({}, root=tmp_path), place=PLACE, secrets=True)
    assert redact("<in-a-file-canary>") == "<[redacted]>"


@pytest.mark.parametrize("name", ["service", "/user", "service/", "/"])
def test_a_keyring_reference_names_service_and_user(name: str) -> None:
    assert "does not name a service and a user" in told(f"${{keyring:{name}}}", Sources({})).message


def test_errors_of_keys_do_not_tell_them() -> None:
    key = Key.fresh()
    assert key.text not in repr(key)
    assert isinstance(SecretError("x"), Exception)
