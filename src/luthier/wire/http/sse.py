"""The text/event-stream format, read as it comes: in linear time, bounded, every legal line ending."""

from __future__ import annotations

import msgspec

from luthier.wire.frame import EXCERPT, Oversized

STREAM = "text/event-stream"
_BOM = b"\xef\xbb\xbf"
_LONGEST_FIELD = 64 * 1024  # of ids and names


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event. `name` is empty where none was given, which means `message`."""

    data: bytes
    name: str = ""


class EventParser:
    """Feed it chunks as they come. `last_id` and `retry` (seconds) are what the stream has said last."""

    def __init__(self, limit: int, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._limit = limit
        self._begun = False
        self._after_return = False  # a newline that comes now belongs to the carriage return before it
        self._line = bytearray()  # the unfinished one; of data that is too long, its end only
        self._data: list[bytes] = []
        self._size = 0  # of the event, as far as it has come
        self._head = b""
        self._tail = b""
        self._over = False
        self._name = ""
        self._id: str | None = None

    @property
    def overflowing(self) -> bool:
        """Whether the event that is coming is larger than may be read already."""
        return self._over

    def feed(self, chunk: bytes) -> list[Event | Oversized]:
        """The events that this chunk completes, in their order."""
        if not self._begun:
            chunk = self._without_mark(chunk)
        if self._after_return and chunk:
            self._after_return = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if not chunk:
            return []
        lines = chunk.splitlines()
        self._after_return = chunk.endswith(b"\r")
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        events: list[Event | Oversized] = []
        for line in lines:
            if self._line or self._over:
                self._keep(line)
                whole, self._line = bytes(self._line), bytearray()
                self._take(whole, events)
            else:
                self._take(line, events)
        if rest:
            self._keep(rest)
        return events

    def end(self) -> Event | Oversized | None:
        """What was left when the stream ended without the blank line that completes an event."""
        events: list[Event | Oversized] = []
        if self._line:
            whole, self._line = bytes(self._line), bytearray()
            self._take(whole, events)
        self._take(b"", events)
        return events[0] if events else None

    def _without_mark(self, chunk: bytes) -> bytes:
        self._line += chunk
        if len(self._line) < len(_BOM) and _BOM.startswith(bytes(self._line)):
            return b""
        self._begun = True
        chunk, self._line = bytes(self._line), bytearray()
        return chunk.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        """A piece of an unfinished line: kept whole while the event may still be read."""
        self._line += piece
        if self._size + len(self._line) > self._limit + _LONGEST_FIELD:
            if not self._over:
                self._overflow()
            self._size += len(self._line)
            self._tail = (self._tail + bytes(self._line))[-EXCERPT:]
            if not self._head:
                self._head = bytes(self._line[:EXCERPT]).removeprefix(b"data:").lstrip(b" ")
            self._line.clear()

    def _take(self, line: bytes, events: list[Event | Oversized]) -> None:
        if not line:
            if self._over or self._data:
                self._complete(events)
            elif self._id is not None:
                self.last_id, self._id = self._id, None
            self._name = ""
            return
        if self._over and not line.startswith((b"id:", b"event:", b"retry:", b":")):
            self._size += len(line)
            self._tail = (self._tail + line)[-EXCERPT:]
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            if self._size - 1 > self._limit:
                self._overflow()
        elif len(value) > _LONGEST_FIELD:
            return
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value[:9]) / 1000

    def _overflow(self) -> None:
        self._over = True
        whole = b"\n".join(self._data)
        self._head = self._head or whole[:EXCERPT]
        self._tail = (self._tail + whole)[-EXCERPT:]
        self._data.clear()

    def _complete(self, events: list[Event | Oversized]) -> None:
        if self._id is not None:
            self.last_id, self._id = self._id, None
        if self._over:
            events.append(Oversized(self._head, self._tail, self._size))
        else:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            if data:
                events.append(Event(data, self._name))
        self._over = False
        self._data.clear()
        self._size = 0
        self._head = self._tail = b""
