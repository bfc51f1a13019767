"""Encrypts what is stored: AES-256-GCM under a key of a ring, bound to the place where it is kept.

Each text has its own random nonce of 96 bits. The place (table, row, column) and the id of the key are
associated data, so what is moved to another row does not open. There is no envelope of one key in another:
texts are short and few, and a rotation encrypts all of them anew.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import SecretError
from luthier.secrets.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES = 32
_NONCE = 12
_SEPARATORS = re.compile(r"[\s,]+")


class Sealed(msgspec.Struct, frozen=True):
    """An encrypted text as it is stored: the id of its key, nonce and ciphertext."""

    key: str
    nonce: bytes
    data: bytes


class Key:
    """32 bytes that are not shown. `id` names them without telling them."""

    __slots__ = ("_text", "id")

    def __init__(self, secret: bytes) -> None:
        self._text = Secret(base64.b64encode(secret).decode())
        self.id = hmac.digest(secret, b"luthier secret key id", hashlib.sha256).hex()[:16]

    @classmethod
    def fresh(cls) -> Key:
        return cls(os.urandom(_BYTES))

    @property
    def text(self) -> str:
        """As it is written into a file."""
        return self._text.reveal()

    def raw(self) -> bytes:
        return base64.b64decode(self._text.reveal())

    def __repr__(self) -> str:
        return f"Key({self.id})"


class KeyRing:
    """Keys, the newest first: that one encrypts, every one decrypts what was encrypted with it."""

    def __init__(self, keys: Iterable[Key], *, where: str) -> None:
        self.keys = tuple(keys)
        self.where = where  # for people: where the keys are kept

    @property
    def newest(self) -> Key:
        return self.keys[0]

    def seal(self, text: str, *place: str) -> Sealed:
        """Encrypt a text for that place."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = self.newest, os.urandom(_NONCE)
        data = AESGCM(key.raw()).encrypt(nonce, text.encode("utf-8", "surrogatepass"), _bound(place, key.id))
        return Sealed(key.id, nonce, data)

    def open(self, sealed: Sealed, *place: str) -> str:
        """The text that was sealed for that place. Raises SecretError."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = next((key for key in self.keys if key.id == sealed.key), None)
        if key is None:
            raise SecretError(
                f"it was encrypted with the key {sealed.key!r}, which is not in {self.where}",
                hint="Bring that key back, or set the secret again: luthier secrets set NAME",
            )
        try:
            text = AESGCM(key.raw()).decrypt(sealed.nonce, sealed.data, _bound(place, key.id))
            return text.decode("utf-8", "surrogatepass")
        except (InvalidTag, ValueError):
            raise SecretError(
                "what is stored does not open: it was changed, cut off, or moved here from another row",
                hint="Set the secret again: luthier secrets set NAME",
            ) from None


def read_keys(text: str, *, where: str) -> KeyRing:
    """The keys in a text: each base64 of 32 bytes, apart by commas or blanks, the newest first.

    Raises SecretError, which does not tell the text.
    """
    keys = []
    for word in filter(None, _SEPARATORS.split(text)):
        try:
            secret = base64.b64decode(word.translate(str.maketrans("-_", "+/")), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _BYTES:
            raise SecretError(
                f"{where} holds something that is no key: a key is 32 bytes in base64",
                hint="Make one with: openssl rand -base64 32",
            )
        keys.append(Key(secret))
    return KeyRing(keys, where=where)


def _bound(place: Iterable[str], key: str) -> bytes:
    return msgspec.json.encode(("luthier", *place, key))
