"""JSON-RPC messages to bytes and back: strict and quick first, lenient where that fails.

The envelope alone is decoded when a frame arrives. A result stays raw until its caller decodes it, once, into
what it needs; so a large result costs the reader of the stream next to nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from luthier.wire.repair import UnreadableError, parse, repair, repair_text, skip_space

T = TypeVar("T")


class Message(msgspec.Struct, gc=False):
    """An incoming message. Nothing is promised about the types of `id`, `method` and `error`."""

    jsonrpc: Any = UNSET
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Any = UNSET


decode = msgspec.json.Decoder(Message).decode
"""One well-formed message. Raises one of REFUSED."""

REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_OPENING = b'{"jsonrpc"'
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


def read(frame: bytes) -> tuple[list[Message], tuple[str, ...]]:
    """The messages of a frame that the strict decoder refused, and what was odd. Raises UnreadableError.

    A frame may hold a batch, several messages without a newline between them, or one among other text.
    """
    data, notes = repair_text(frame)
    try:
        return _pieces(data, notes)
    except UnreadableError:
        found = data.find(_OPENING, 1)
        if found < 0:
            raise
        return _pieces(data[found:], (*notes, "other text stood before it on its line"))


def value(raw: Raw | bytes, decoder: msgspec.json.Decoder[T]) -> tuple[T, tuple[str, ...]]:
    """What the decoder makes of it, leniently, and what was odd. Raises UnreadableError."""
    try:
        return decoder.decode(raw), ()
    except REFUSED:
        data, notes = repair(bytes(raw))
    try:
        return decoder.decode(data), notes
    except REFUSED as error:
        raise UnreadableError(str(error)) from None


def _pieces(data: bytes, notes: tuple[str, ...]) -> tuple[list[Message], tuple[str, ...]]:
    if data[:1] not in (b"{", b"["):
        raise UnreadableError("it is not JSON")
    try:
        return _messages(data), notes
    except REFUSED:
        text = data.decode()
    messages: list[Message] = []
    seen = dict.fromkeys(notes)
    start = 0
    while start < len(text):
        try:
            found, end, more = parse(text, start)
            messages += _messages(msgspec.json.encode(found))
        except (UnreadableError, *REFUSED) as error:
            if not messages:
                raise UnreadableError(str(error)) from None
            seen["other text stood after it on its line"] = None
            break
        seen.update(dict.fromkeys(more))
        start = skip_space(text, end)
    return messages, tuple(seen)


def _messages(data: bytes) -> list[Message]:
    """One message, or those of a batch that are any."""
    if data[:1] != b"[":
        return [decode(data)]
    messages = []
    for item in _batch(data):
        with contextlib.suppress(*REFUSED):
            messages.append(decode(item))
    if not messages:
        raise UnreadableError("it is an array without a message")
    return messages
