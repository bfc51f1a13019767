"""The vault: secrets by name, kept encrypted in a store that need not be trusted with them."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.errors import Fault, InputError, SecretError
from luthier.secrets.cipher import Sealed
from luthier.secrets.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.secrets.cipher import KeyRing
    from luthier.secrets.keys import Keys

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_KIND = "secrets"
LONGEST = 64 * 1024
_TRIES = 100  # of a swap that others get in the way of: each of them got something done


class Shelf(Protocol):
    """What the vault asks of a store: JSON values by kind and key. Each raises StoreError."""

    def get(self, kind: str, key: str) -> Any | None: ...

    def list(self, kind: str) -> dict[str, Any]: ...

    def swap(self, kind: str, key: str, expected: Any | None, value: Any | None) -> bool: ...


class Kept(msgspec.Struct, frozen=True):
    """What the vault tells of a secret: its name, the id of its key, when it was set (Unix seconds)."""

    name: str
    key: str
    at: float


class _Row(Sealed, frozen=True):
    at: float = 0.0


class Vault:
    """Secrets in a store. `keys` finds the keys of the store with the given id."""

    def __init__(
        self, shelf: Shelf, keys: Callable[[str], Keys], *, now: Callable[[], float] = time.time
    ) -> None:
        self._shelf = shelf
        self._find_keys = keys
        self._now = now

    def get(self, name: str) -> Secret | None:
        """The secret of that name, or None. Raises InputError, SecretError and StoreError."""
        row = self._shelf.get(_KIND, name)
        if row is None:
            return None
        try:
            return Secret(_open(self._keys().ring(), name, row))
        except SecretError as error:
            raise _named(name, error) from None

    def list(self) -> tuple[Kept, ...]:
        """What there is, by name; nothing is decrypted."""
        return tuple(_kept(name, row) for name, row in sorted(self._shelf.list(_KIND).items()))

    def set(self, name: str, secret: Secret) -> None:
        """Keep a secret in place of the one before. Raises SecretError and StoreError."""
        if not NAME.fullmatch(name):
            hint = "letters, digits, - _ and . make a name, at most 128 of them"
            raise InputError([Fault(f"{name!r} is not a name of a secret", suggestion=hint)])
        text = secret.reveal()
        if not text or len(text) > LONGEST:
            hint = "larger ones go into a file"
            raise InputError([Fault(f"a secret has 1 to {LONGEST} characters", suggestion=hint)])
        with self._keys().writing() as ring:
            self._change(name, lambda _: msgspec.to_builtins(_sealed(ring, name, text, self._now())))

    def remove(self, name: str) -> bool:
        """Forget a secret; whether there was one."""
        return self._change(name, lambda _: None) is not None

    def rotate(self) -> int:
        """Encrypt every secret with a new key, then drop the old ones; how many there were.

        Interrupted, every secret opens still, and the next rotation does the rest. A secret that cannot be
        read stops it before any key is dropped.
        """
        count = 0
        with self._keys().rotating() as ring:

            def renewed(row: Any) -> Any:
                if row is None:  # it was removed meanwhile
                    return None
                kept = _row(row)
                if kept.key == ring.newest.id:
                    return row
                return msgspec.to_builtins(_sealed(ring, name, _open(ring, name, row), kept.at))

            for name in self._shelf.list(_KIND):
                try:
                    self._change(name, renewed)
                except SecretError as error:
                    raise _named(name, error) from None
                count += 1
        return count

    def keys(self) -> Keys:
        """Where the keys of this store are."""
        return self._keys()

    def _keys(self) -> Keys:
        store = self._shelf.get("vault", "id")
        if store is None:
            self._shelf.swap("vault", "id", None, secrets.token_hex(8))
            store = self._shelf.get("vault", "id")
        if not isinstance(store, str) or not NAME.fullmatch(store):
            raise SecretError("the store does not say which its keys are: its id is damaged")
        return self._find_keys(store)

    def _change(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Replace the row by what is made of it; gives the row before."""
        for _ in range(_TRIES):
            row = self._shelf.get(_KIND, name)
            fresh = change(row)
            if fresh == row or self._shelf.swap(_KIND, name, row, fresh):
                return row
        raise SecretError(f"the secret {name!r} is changed by others all the time")


def _sealed(ring: KeyRing, name: str, text: str, at: float) -> _Row:
    sealed = ring.seal(text, _KIND, name, "data")
    return _Row(sealed.key, sealed.nonce, sealed.data, at)


def _open(ring: KeyRing, name: str, row: Any) -> str:
    return ring.open(_row(row), _KIND, name, "data")


def _row(row: Any) -> _Row:
    try:
        return msgspec.convert(row, _Row)
    except msgspec.ValidationError:
        raise SecretError(
            "its row in the store is damaged", hint="Set the secret again: luthier secrets set NAME"
        ) from None


def _kept(name: str, row: Any) -> Kept:
    try:
        found = _row(row)
    except SecretError:
        return Kept(name, "", 0.0)
    return Kept(name, found.key, found.at)


def _named(name: str, error: SecretError) -> SecretError:
    hint = error.hint.replace("NAME", name)
    return SecretError(f"the secret {name!r} cannot be read: {error.message}", hint=hint)
