"""Frames of a byte stream: lines that end at byte 0x0A and nowhere else, in linear time and bounded memory.

U+2028 and its like are legal inside a JSON message, so no function for text may split here.
"""

from __future__ import annotations

import msgspec

EXCERPT = 4096
"""Bytes kept of each end of a line that was thrown away: enough to find the request that it answers."""


class Oversized(msgspec.Struct, frozen=True):
    """A line over the limit, thrown away as it came, but for up to 4 KiB of either end."""

    head: bytes
    tail: bytes
    size: int


class LineSplitter:
    """Feed it chunks as they come; it gives back whole lines without their newline."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()  # of the unfinished line; of its end only, once it is too long
        self._size = 0  # of the unfinished line
        self._head = b""  # of the unfinished line, up to EXCERPT

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that this chunk completes, in their order."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        if not pieces:
            self._keep(rest)
            return []
        lines: list[bytes | Oversized] = list(pieces)
        if self._size:
            self._keep(pieces[0])
            lines[0] = self._finish()
        if len(data) > self._limit:
            lines = [self._checked(line) for line in lines]
        if rest:
            self._keep(rest)
        return lines

    def end(self) -> bytes | Oversized | None:
        """What was left without a newline when the stream ended."""
        return self._finish() if self._size else None

    def _keep(self, piece: bytes) -> None:
        self._rest += piece
        self._size += len(piece)
        self._head += piece[: EXCERPT - len(self._head)]
        if self._size > self._limit:
            del self._rest[:-EXCERPT]

    def _finish(self) -> bytes | Oversized:
        line, head, size = bytes(self._rest), self._head, self._size
        self._rest, self._head, self._size = bytearray(), b"", 0
        return Oversized(head, line, size) if size > self._limit else line

    def _checked(self, line: bytes | Oversized) -> bytes | Oversized:
        if isinstance(line, Oversized) or len(line) <= self._limit:
            return line
        return Oversized(line[:EXCERPT], line[-EXCERPT:], len(line))
