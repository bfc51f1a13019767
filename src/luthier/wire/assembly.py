"""JSON that a server prints over several lines, put together again: in linear time and bounded."""

from __future__ import annotations

import re

ASSEMBLY_BYTES = 10 * 1024 * 1024
"""The most that is put together."""

_QUOTES = 100_000  # and backslashes in one line: more than anybody prints, and slow to tell apart

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("|\\?$)', re.DOTALL)
_BEGINS = re.compile(rb'\s*(?:\{\s*(?:"|$)|\[\s*(?:\{|$))')


class Assembly:
    """Lines of one JSON text. Complete once every bracket outside strings is closed."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self.refusal = ""  # why it cannot be put together, once that is so
        self._depth = 0
        self._in_string = False

    @property
    def text(self) -> bytes:
        return b"\n".join(self.lines)

    @property
    def complete(self) -> bool:
        return self._depth <= 0 and not self._in_string

    def add(self, line: bytes) -> None:
        self.lines.append(line)
        self.size += len(line) + 1
        if self.size > ASSEMBLY_BYTES:
            self.refusal = "it is spread over too many lines"
        elif line.count(b'"') + line.count(b"\\") > _QUOTES:
            self.refusal = "one of its lines holds too many quotes"
        if self.refusal:
            return
        self._in_string, outside = _outside_strings(line, begun=self._in_string)
        self._depth += outside.count(b"{") + outside.count(b"[") - outside.count(b"}") - outside.count(b"]")


def begin(line: bytes) -> Assembly | None:
    """The assembly that this line opens, if it looks like JSON and leaves a bracket open."""
    if not _BEGINS.match(line):
        return None
    assembly = Assembly()
    assembly.add(line)
    return None if assembly.complete or assembly.refusal else assembly


def _outside_strings(line: bytes, *, begun: bool) -> tuple[bool, bytes]:
    """Whether a string is open at the end of the line, and what of the line is in none."""
    if begun:
        line = b'"' + line
    open_at_end = False

    def blank(match: re.Match[bytes]) -> bytes:
        nonlocal open_at_end
        open_at_end = match[1] != b'"'
        return b""

    outside = _STRING.sub(blank, line)
    return open_at_end, outside
