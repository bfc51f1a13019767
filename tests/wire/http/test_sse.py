"""Streams of events: every legal form is read, however it is cut, and nothing grows without bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.wire.frame import Oversized
from luthier.wire.http.sse import Event, EventParser

CASES = {
    "plain": (b"data: a\n\n", [Event(b"a")]),
    "no blank after the colon": (b"data:a\n\n", [Event(b"a")]),
    "only one blank is taken away": (b"data:  a\n\n", [Event(b" a")]),
    "carriage return and newline": (b"data: a\r\n\r\n", [Event(b"a")]),
    "carriage returns alone": (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
    "mixed endings": (b"data: a\r\n\ndata: b\r\rdata: c\n\r\n", [Event(b"a"), Event(b"b"), Event(b"c")]),
    "several lines": (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
    "a name": (b"event: endpoint\ndata: /x\n\n", [Event(b"/x", "endpoint")]),
    "a name is for one event": (b"event: e\ndata: a\n\ndata: b\n\n", [Event(b"a", "e"), Event(b"b")]),
    "a name without data is forgotten": (b"event: e\n\ndata: b\n\n", [Event(b"b")]),
    "comments": (b": ping\n\n:\ndata: a\n: x\n\n", [Event(b"a")]),
    "empty data": (b"id: 1\ndata:\n\ndata: a\n\n", [Event(b"a")]),
    "unknown fields": (b"colour: red\ndata: a\nlonely\n\n", [Event(b"a")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
    "separators that end no line": (
        "data: a\u2028b\x0bc\x85\n\n".encode(),
        [Event("a\u2028b\x0bc\x85".encode())],
    ),
    "nothing": (b"", []),
    "blank lines": (b"\n\r\n\r\n\n", []),
}


@pytest.mark.parametrize("name", CASES)
def test_every_legal_form_is_read(name: str) -> None:
    stream, events = CASES[name]
    assert EventParser(1000).feed(stream) == events


@given(st.sampled_from(sorted(CASES)), st.data())
def test_chunks_make_no_difference(name: str, data: st.DataObject) -> None:
    stream, events = CASES[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    parser = EventParser(1000)
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += parser.feed(stream[begin:end])
    assert found == events


lines = st.sampled_from(
    [b"data: x", b"data:yy", b"event: e", b"id: 7", b": c", b"retry: 5", b"", b"data", b"z: 1"]
)


@given(
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=20),
    st.integers(0, 12),
    st.data(),
)
def test_any_stream_cut_anywhere_gives_the_same(
    parts: list[tuple[bytes, bytes]], limit: int, data: st.DataObject
) -> None:
    stream = b"".join(line + ending for line, ending in parts)
    whole = EventParser(limit)
    expected = whole.feed(stream)
    parser = EventParser(limit)
    found = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += parser.feed(stream[begin:end])
    assert found == expected
    assert (parser.last_id, parser.retry) == (whole.last_id, whole.retry)


def test_an_id_counts_once_its_event_is_complete() -> None:
    parser = EventParser(1000)
    parser.feed(b"id: 1\ndata: a\n")
    assert parser.last_id is None
    parser.feed(b"\n")
    assert parser.last_id == "1"


def test_an_id_without_data_counts_too() -> None:
    parser = EventParser(1000)
    assert parser.feed(b"id: 5\n\nid: 6\ndata:\n\n") == []
    assert parser.last_id == "6"


def test_an_id_with_a_zero_byte_is_none() -> None:
    parser = EventParser(1000, "4")
    parser.feed(b"id: 5\0\n\n")
    assert parser.last_id == "4"


def test_the_time_to_wait_is_told_in_seconds_and_only_of_digits() -> None:
    parser = EventParser(1000)
    parser.feed(b"retry: 1500\nretry: soon\n\n")
    assert parser.retry == 1.5


def test_the_last_event_may_lack_its_end() -> None:
    for stream in (b"data: a", b"data: a\n"):
        parser = EventParser(1000)
        assert parser.feed(stream) == []
        assert parser.end() == Event(b"a")
        assert parser.end() is None


@pytest.mark.parametrize("cut", [3, 100, 100_000])
@pytest.mark.parametrize("size", [1001, 200_000])
def test_an_event_over_the_limit_is_thrown_away_but_for_its_ends(size: int, cut: int) -> None:
    stream = b'data: {"head":"' + b"x" * size + b'","id":9}\n\ndata: after\n\n'
    parser = EventParser(1000)
    found = []
    for begin in range(0, len(stream), cut):
        found += parser.feed(stream[begin : begin + cut])
    large, after = found
    assert isinstance(large, Oversized)
    assert large.head.startswith(b'{"head":"xxx')
    assert large.tail.endswith(b'x","id":9}')
    assert len(large.head) <= 4096
    assert len(large.tail) <= 4096
    assert large.size >= size
    assert after == Event(b"after")


def test_an_endless_line_takes_no_more_memory_than_it_may() -> None:
    parser = EventParser(1000)
    for _ in range(2000):
        parser.feed(b"y" * 10_000)
    assert (
        sum(len(value) for value in vars(parser).values() if isinstance(value, bytes | bytearray)) < 300_000
    )


def test_many_lines_of_data_count_together() -> None:
    (event,) = EventParser(1000).feed(b"data: 123456789\n" * 200 + b"\n")
    assert isinstance(event, Oversized)


def test_ids_and_names_that_are_too_long_are_passed_over() -> None:
    parser = EventParser(1_000_000, "before")
    assert parser.feed(b"id: " + b"i" * 100_000 + b"\nevent: " + b"e" * 100_000 + b"\ndata: a\n\n") == [
        Event(b"a")
    ]
    assert parser.last_id == "before"
