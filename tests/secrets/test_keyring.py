"""The keyring of the machine, through the real package with a keyring of its own; and without the package."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import keyring
import keyring.backend
import keyring.errors
import pytest

from luthier.errors import UnresolvedReferenceError
from luthier.secrets import Sources, expand

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY = "ringing-canary-0123"
PLACE = "luthier.yaml:3:5"


class Ring(keyring.backend.KeyringBackend):  # type: ignore[misc,no-untyped-call,unused-ignore]
    """A keyring that can be locked."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked(f"locked, says {CANARY}")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def read(reference: str) -> str:
    return expand(reference, Sources({}), place=PLACE, secrets=True)


def test_a_password_stands_for_its_service_and_user(ring: Ring) -> None:
    keyring.set_password("https://git.example", "me", CANARY)
    assert read("Bearer ${keyring:https://git.example/me}") == f"Bearer {CANARY}"


def test_what_is_not_there_is_named_with_how_to_set_it(ring: Ring) -> None:
    with pytest.raises(UnresolvedReferenceError, match="holds nothing for 'me' of 'git'") as caught:
        read("${keyring:git/me}")
    assert caught.value.hint == "Set it: keyring set git me"


def test_a_keyring_that_is_locked_fails_and_its_words_are_not_repeated(ring: Ring) -> None:
    ring.locked = True
    with pytest.raises(UnresolvedReferenceError, match="cannot be read: KeyringLocked") as caught:
        read("${keyring:git/me}")
    assert CANARY not in str(caught.value)


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['keyring'] = None\n"
        "from luthier.secrets import Sources, expand\n"
        "expand('${keyring:git/me}', Sources({}), place='here', secrets=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert "is not installed" in done.stderr
    assert "pip install 'luthier[keyring]'" in done.stderr
