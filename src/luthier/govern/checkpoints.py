"""Signed checkpoints of the audit log, kept away from it: how far it had come, and with which last line.

A chain of lines cannot tell that its end was cut off, nor that all of it was taken away; a checkpoint can.
Each is one line of JSON, `{…, "signature"}`, and what is signed is the line as it would stand without the
signature.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import AuditError, Fault
from luthier.govern.keys import is_signed
from luthier.spec.places import reading

if TYPE_CHECKING:
    from luthier.govern.keys import AuditKey

EVERY = 1024
"""Records between two checkpoints of a busy log."""

AFTER = 1.0
"""Seconds after the last checkpoint, from which on a record brings another."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """At `at`, `segment` had `count` lines and the last of them had the hash `head`."""

    segment: str
    count: int
    head: str
    at: str
    key: str
    public: str
    signature: str = ""

    def body(self) -> bytes:
        """What is signed."""
        return _encode(msgspec.structs.replace(self, signature=""))


class CheckpointFile:
    """The file that they are kept in; several processes may write to it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def add(self, key: AuditKey, *, segment: str, count: int, head: str, at: str) -> None:
        """Sign and append one. Raises AuditError when it is not surely written."""
        made = Checkpoint(segment=segment, count=count, head=head, at=at, key=key.id, public=key.public)
        line = _encode(msgspec.structs.replace(made, signature=key.sign(made.body()))) + b"\n"
        try:
            self._append(line)
        except OSError as error:
            raise AuditError(
                f"The checkpoints of the audit log cannot be written to {self.path}: {error}.",
                hint="Make room or fix the permissions, or name another file as `audit: {checkpoints: …}`.",
            ) from error

    def read(self, public: str) -> tuple[list[Checkpoint], list[Fault]]:
        """All checkpoints that `public` signed, and what is wrong with other lines. Raises OSError."""
        try:
            with reading(self.path) as file:
                *lines, _ = file.read().split(b"\n")  # a line without an end was never finished
        except FileNotFoundError:
            return [], []
        good: list[Checkpoint] = []
        faults: list[Fault] = []
        for number, line in enumerate(lines, 1):
            try:
                read = _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                faults.append(Fault("it is not a checkpoint", str(self.path), number, 1))
                continue
            if read.public == public and is_signed(read.body(), read.signature, public):
                good.append(read)
            else:
                said = "the key of this log did not sign it, or it was changed"
                faults.append(Fault(said, str(self.path), number, 1))
        return good, faults

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Without blocking: a pipe of that name would be waited for without end.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(self.path, flags, 0o600)
        try:
            if os.write(handle, line) != len(line):
                raise OSError("the disk took only a part of a line")
        finally:
            os.close(handle)


_encode = msgspec.json.Encoder().encode
_DECODER = msgspec.json.Decoder(Checkpoint)
