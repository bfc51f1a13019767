"""The key of the audit log: what its lines are chained with, what its checkpoints are signed with.

One secret of 32 bytes stands behind both. The chain is HMAC-SHA256 (RFC 2104); checkpoints are signed with
Ed25519 (RFC 8032), so that they can be checked by who has only the public half.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from luthier.errors import AuditError
from luthier.secrets.files import read_small

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_BLOCK = 64  # bytes of a block of SHA-256
_LEAST = 32  # characters of a key that somebody chose


class AuditKey:
    """One secret, and what is made of it. `id` names it without telling it.

    The two half-done hashes are HMAC's own first steps, kept: a line costs 1.3 µs instead of 3.2 µs.
    """

    __slots__ = ("_inner", "_outer", "_secret", "_signer", "id")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        chain = self._derived(b"luthier audit chain") + bytes(_BLOCK - 32)
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in chain))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in chain))
        self._signer: Ed25519PrivateKey | None = None
        self.id = self._derived(b"luthier audit key id").hex()[:16]

    @classmethod
    def fresh(cls) -> AuditKey:
        """A new one."""
        return cls(secrets.token_bytes(32))

    def mac(self, line: bytes) -> str:
        """The HMAC-SHA256 of a line, as hex."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(line)
        outer.update(inner.digest())
        return outer.hexdigest()

    def sign(self, text: bytes) -> str:
        """The Ed25519 signature of a text, as hex."""
        return self._signing().sign(text).hex()

    @property
    def public(self) -> str:
        """The public half, as hex, with which signatures are checked."""
        return self._signing().public_key().public_bytes_raw().hex()

    def __repr__(self) -> str:
        return f"AuditKey({self.id})"

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.digest(self._secret, purpose, "sha256")

    def _signing(self) -> Ed25519PrivateKey:
        if self._signer is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            self._signer = Ed25519PrivateKey.from_private_bytes(self._derived(b"luthier audit checkpoints"))
        return self._signer


def is_signed(text: bytes, signature: str, public: str) -> bool:
    """Whether the signature of a text was made by the private half of `public`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_of_text(text: str, *, where: str) -> AuditKey:
    """The key that somebody chose. Raises AuditError for one that is too short to keep anything safe."""
    text = text.strip()
    if len(text) < _LEAST:
        raise AuditError(
            f"The key of the audit log, {where}, has only {len(text)} characters.",
            hint=f"Take {_LEAST} random ones or more, as `openssl rand -hex 32` prints them.",
        )
    return AuditKey(text.encode())


def read_key(path: Path) -> AuditKey | None:
    """The key in a file; None where there is no file. Raises AuditError when it is no good."""
    try:
        text = read_small(path)[0].decode("ascii")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise AuditError(
            f"The key of the audit log in {path} cannot be read: {why}.",
            hint="Give back the file, or take it away to begin with a new key and a new log.",
        ) from error
    return key_of_text(text, where=str(path))


def keep_key(path: Path) -> AuditKey:
    """The key in a file, which is made, for its owner's eyes only, if it is not there. Raises AuditError.

    However many processes come to make it, one key stays.
    """
    found = read_key(path)
    if found is not None:
        return found
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(path)
    except OSError as error:
        raise AuditError(
            f"The key of the audit log cannot be kept in {path}: {error.strerror or error}.",
            hint="Make that folder writable, or name another file as `audit: {key_file: …}`.",
        ) from error
    made = read_key(path)
    if made is None:
        raise AuditError(f"The key of the audit log in {path} is gone as soon as it is made.")
    return made


def _make(path: Path) -> None:
    made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first, and its key is the one
            os.link(made, path)
    finally:
        made.unlink()
