"""JSON-RPC messages to bytes and back: strict and quick first, lenient where that fails.

The envelope alone is decoded when a frame arrives. A result stays raw until its caller decodes it, once, into
what it needs; so a large result costs the reader of the stream next to nothing. Nor may a hostile one hold up
the loop that all servers share: what a message may hold is bounded wherever it is slow to read.
"""

from __future__ import annotations

import contextlib
import gc
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from luthier.wire.repair import (
    BOM,
    LENIENT_BYTES,
    Lenient,
    TooMuchError,
    UnreadableError,
    repair,
    repair_text,
)

T = TypeVar("T")


class Message(msgspec.Struct, gc=False):
    """An incoming message. Nothing is promised about the types of `id`, `method` and `error`."""

    jsonrpc: Any = UNSET
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Any = UNSET


class _Large(msgspec.Struct, gc=False):
    """A message of more than LENIENT_BYTES: nothing in it is decoded before it is known to be worth it."""

    jsonrpc: Raw | UnsetType = UNSET
    id: str | int | float | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

MESSAGES = 1000
"""The most that are read of one frame."""

CONTAINERS = 1_000_000
"""The most lists and objects of one large value."""

_MORE = f"more than {MESSAGES:,} stood on its line, of which the rest was passed over"
_BEGINS = re.compile(rb"(?:" + BOM + rb")?[ \t\r\n]*[{\[]")
_OPENING = b'{"jsonrpc"'
_small = msgspec.json.Decoder(Message).decode
_large = msgspec.json.Decoder(_Large).decode
_any = msgspec.json.Decoder()
_batch = msgspec.json.Decoder(list[Raw]).decode


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    message = f"a {type(value).__name__} has no form in JSON"
    raise TypeError(message)


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def encode(message: Mapping[str, Any]) -> bytes:
    """One line of JSON. Raises ValueError or TypeError for what JSON cannot say."""
    try:
        return _encode(message)
    except UnicodeEncodeError:  # a lone surrogate: legal in JSON as an escape, and only so
        return json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode(frame: bytes | Raw) -> Message:
    """One well-formed message. Raises one of REFUSED."""
    return _small(frame) if len(frame) <= LENIENT_BYTES else _decode_large(bytes(frame))


def read(frame: bytes) -> tuple[list[Message], tuple[str, ...]]:
    """The messages of a frame that the strict decoder refused, and what was odd. Raises UnreadableError.

    A frame may hold a batch, several messages without a newline between them, or one among other text. Of
    more than MESSAGES, the first are read.
    """
    if not _BEGINS.match(frame) and _OPENING not in frame:
        raise UnreadableError("it is not JSON")
    data, notes = repair_text(frame)
    try:
        return _pieces(data, notes)
    except UnreadableError as error:
        found = data.find(_OPENING, 1)
        if found < 0:
            raise
        with contextlib.suppress(UnreadableError):
            return _pieces(data[found:], (*notes, "other text stood before it on its line"))
        raise error from None


def value(raw: Raw | bytes, decoder: msgspec.json.Decoder[T]) -> tuple[T, tuple[str, ...]]:
    """What the decoder makes of it, leniently, and what was odd. Raises UnreadableError."""
    try:
        return (decoder.decode(raw) if len(raw) <= LENIENT_BYTES else _decoded(raw, decoder)), ()
    except REFUSED:
        data, notes = repair(bytes(raw))
    try:
        return _decoded(data, decoder), notes
    except REFUSED as error:
        raise UnreadableError(str(error)) from None


def _decode_large(frame: bytes) -> Message:
    large = _large(frame)
    error: Any = large.error
    if error is not UNSET:
        try:
            error = _decoded(error, _any)
        except TooMuchError as too_much:
            error = str(too_much)
    jsonrpc = UNSET if large.jsonrpc is UNSET else ""
    return Message(jsonrpc, large.id, large.method, large.params, large.result, error)


def _decoded(raw: Raw | bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """A value, however large. Raises one of REFUSED, or TooMuchError."""
    if len(raw) <= LENIENT_BYTES:
        return decoder.decode(raw)
    data = bytes(raw)
    if data.count(b"[") + data.count(b"{") > CONTAINERS:
        raise TooMuchError(f"it holds more than {CONTAINERS:,} lists and objects")
    collected = gc.isenabled()
    gc.disable()  # while the value grows, it would be searched again and again for what can be thrown away
    try:
        return decoder.decode(data)
    finally:
        if collected:
            gc.enable()


def _pieces(data: bytes, notes: tuple[str, ...]) -> tuple[list[Message], tuple[str, ...]]:
    if data[:1] not in (b"{", b"["):
        raise UnreadableError("it is not JSON")
    seen = dict.fromkeys(notes)
    try:
        return _messages(data, seen), tuple(seen)
    except REFUSED:
        lenient = Lenient(data)
    messages: list[Message] = []
    start = 0
    while start < len(lenient.text):
        if len(messages) >= MESSAGES:
            seen[_MORE] = None
            break
        try:
            found, start = lenient.read(start)
            messages += _messages(msgspec.json.encode(found), seen)
        except (UnreadableError, *REFUSED) as error:
            if not messages:
                raise UnreadableError(str(error)) from None
            seen["other text stood after it on its line"] = None
            break
    return messages, (*seen, *lenient.notes)


def _messages(data: bytes, notes: dict[str, None]) -> list[Message]:
    """One message, or those of a batch that are any; what was odd is added to the notes."""
    if data[:1] != b"[":
        return [decode(data)]
    if len(data) > LENIENT_BYTES:
        raise TooMuchError(f"it is an array of more than {LENIENT_BYTES:,} bytes")
    items = _batch(data)
    if len(items) > MESSAGES:
        notes[_MORE] = None
    messages = []
    for item in items[:MESSAGES]:
        with contextlib.suppress(*REFUSED):
            messages.append(decode(item))
    if not messages:
        raise UnreadableError("it is an array without a message")
    return messages
