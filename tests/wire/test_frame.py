"""Framing: lines end at 0x0A only, in any chunking, within the limit."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.wire.frame import EXCERPT, LineSplitter, Oversized


def fed(limit: int, *chunks: bytes) -> list[bytes | Oversized]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.end()
    return lines if rest is None else [*lines, rest]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:stop] for start, stop in pairwise(marks)]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=12), st.integers(1, 60))
def test_any_chunking_gives_the_same_lines(data: bytes, places: list[int], limit: int) -> None:
    assert fed(limit, *cut(data, places)) == fed(limit, data)


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8))
def test_lines_within_the_limit_come_back_as_they_were(lines: list[bytes]) -> None:
    assert fed(30, b"".join(line + b"\n" for line in lines)) == lines


@pytest.mark.parametrize(
    "inside",
    ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\r", "\x1c"],
    ids=lambda text: f"U+{ord(text):04X}",
)
def test_only_a_newline_ends_a_line(inside: str) -> None:
    line = f"a{inside}b".encode()
    assert fed(100, line + b"\n" + line + b"\n") == [line, line]


def test_what_follows_the_last_newline_is_given_at_the_end() -> None:
    assert fed(100, b"one\ntwo") == [b"one", b"two"]


def test_a_line_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert fed(10, b"x" * 10 + b"\n") == [b"x" * 10]
    assert fed(10, b"x" * 11 + b"\n") == [Oversized(b"x" * 11, b"x" * 11, 11)]


def test_a_line_over_the_limit_costs_that_line_only() -> None:
    assert fed(10, b"a\n", b"b" * 8, b"b" * 8, b"b\nc", b"\n") == [
        b"a",
        Oversized(b"b" * 17, b"b" * 17, 17),
        b"c",
    ]


def test_of_a_line_over_the_limit_both_ends_are_kept() -> None:
    body = b"<" + b"m" * 100_000 + b">"
    (line,) = fed(50_000, *(body[start : start + 977] for start in range(0, len(body), 977)), b"\n")
    assert isinstance(line, Oversized)
    assert line.size == len(body)
    assert line.head.startswith(b"<")
    assert line.tail.endswith(b">")
    assert len(line.head) == len(line.tail) == EXCERPT


def test_a_long_line_is_read_in_linear_time() -> None:
    def seconds(size: int) -> float:
        chunk, began = b"x" * 4096, time.process_time()
        fed(size * 2, *[chunk] * (size // 4096), b"\n")
        return time.process_time() - began

    small = min(seconds(2 * 1024 * 1024) for _ in range(3))
    large = min(seconds(16 * 1024 * 1024) for _ in range(3))
    assert large < max(small, 0.002) * 8 * 6  # eight times the work; quadratic would be sixty-four times
