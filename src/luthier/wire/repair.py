"""The second, lenient reader: makes strict JSON of what servers send and msgspec refuses.

Read in the way that loses least: a byte that is not UTF-8 and a lone surrogate become U+FFFD; NaN, infinities
and numbers beyond a double become null; raw control characters inside strings are taken as they are. It is
slow, and only for what the first reader has refused. As everybody waits meanwhile, what it takes is bounded:
beyond its bounds a text is refused with TooMuchError.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import msgspec

LENIENT_BYTES = 1024 * 1024
"""The longest text whose JSON is read leniently; its characters alone are repaired at any length."""

BOM = b"\xef\xbb\xbf"
_DIGITS = 4300  # of the longest integer that Python reads back

_SURROGATE = re.compile(
    rb"\\\\"  # an escaped backslash: what follows it is text
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, which is fine
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
)
_SPACE = re.compile(r"\s*")
_FAR = re.compile(r"[eE]\+?[0-9]{3}|(?<![0-9])[0-9]{200}")  # without it, every number is within a double
_check = msgspec.json.Decoder().decode

_BEYOND = "a number beyond all bounds was read as null"
_REPAIRS = 100_000  # of escapes that are looked at one by one
_FOREIGN = 1024 * 1024  # bytes outside ASCII in a text that is not UTF-8
_ABOVE_ASCII = bytes(range(128, 256))


class UnreadableError(ValueError):
    """No JSON can be made of it. The text says why."""


class TooMuchError(UnreadableError):
    """Making JSON of it would take too long, or too much memory."""


def repair(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """One JSON text as strict JSON, and what had to be changed. Raises UnreadableError."""
    data, notes = repair_text(data)
    try:
        _check(data)
    except (msgspec.DecodeError, RecursionError):
        lenient = Lenient(data)
        value, end = lenient.read(0)
        if end < len(lenient.text):
            _refuse("more follows after its end")
        try:
            return msgspec.json.encode(value), (*notes, *lenient.notes)
        except RecursionError:
            _refuse("it is nested too deeply")
    return data, notes


def repair_text(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Valid UTF-8 without byte order mark and lone surrogates, JSON or not."""
    notes = []
    data = data.removeprefix(BOM).strip(b" \t\r\n")
    try:
        data.decode()
    except UnicodeDecodeError:
        if len(data) - len(data.translate(None, _ABOVE_ASCII)) > _FOREIGN:
            raise TooMuchError("too much of it is in another encoding than UTF-8") from None
        data = data.decode(errors="replace").encode()
        notes.append("bytes that are not UTF-8 were replaced")
    if b"\\ud" in data or b"\\uD" in data:
        if data.count(b"\\\\") + data.count(b"\\ud") + data.count(b"\\uD") > _REPAIRS:
            raise TooMuchError("it is not strict JSON, and has too many escapes to be looked at")
        fixed = _SURROGATE.sub(lambda match: b"\\ufffd" if match[1] else match[0], data)
        if fixed != data:
            data = fixed
            notes.append("lone surrogates were replaced")
    return data, tuple(notes)


class Lenient:
    """Reads values out of one text, which is UTF-8. `notes` says what had to be changed so far."""

    def __init__(self, data: bytes) -> None:
        """Raises TooMuchError."""
        if len(data) > LENIENT_BYTES:
            raise TooMuchError(
                f"it is not strict JSON, and no more than {LENIENT_BYTES:,} bytes of such are read; "
                f"it has {len(data):,}"
            )
        self.text = data.decode()
        self._changed: set[str] = set()
        self._constants: set[str] = set()
        far = _FAR.search(self.text) is not None
        self._decoder = json.JSONDecoder(
            parse_constant=self._constants.add,  # which returns None
            parse_float=self._decimal if far else None,
            parse_int=self._integer if far else None,
            strict=False,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(sorted(self._changed | {f"{name} was read as null" for name in self._constants}))

    def read(self, start: int) -> tuple[Any, int]:
        """The value that begins there, and where the next may begin. Raises UnreadableError."""
        try:
            value, end = self._decoder.raw_decode(self.text, start)
        except RecursionError:
            _refuse("it is nested too deeply")
        except ValueError as error:
            _refuse(str(error))
        space = _SPACE.match(self.text, end)
        return value, space.end() if space else end

    def _decimal(self, digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        self._changed.add(_BEYOND)
        return None

    def _integer(self, digits: str) -> int | None:
        if len(digits) < _DIGITS:
            return int(digits)
        self._changed.add(_BEYOND)
        return None


def _refuse(reason: str) -> NoReturn:
    raise UnreadableError(reason) from None
