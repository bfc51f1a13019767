"""Bodies that come compressed, unpacked piece by piece: what is unpacked is counted by whoever reads it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED = "gzip, deflate"
PIECE = 256 * 1024
"""Bytes unpacked at a time: a small body may stand for gigabytes."""

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Inflater:
    """One compressed body. Raises ValueError for data that is none."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What this chunk unpacks to, in pieces."""
        while data:
            try:
                piece = self._zlib.decompress(data, PIECE)
            except zlib.error as error:
                if self._begun:
                    raise ValueError(str(error)) from None
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some send deflate without its header
                self._begun = True
                continue
            self._begun = True
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            if self._zlib.eof:
                data = self._zlib.unused_data
                if not data.startswith(b"\x1f\x8b"):
                    return  # padding, or nothing
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)

    @property
    def complete(self) -> bool:
        return self._zlib.eof or not self._begun


def unpacker(encoding: str) -> Inflater | None:
    """What unpacks bodies of this Content-Encoding; None for plain ones. Raises ValueError."""
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return Inflater()
        case other:
            raise ValueError(f"it is encoded as {other[:40]!r}, which was not asked for")
