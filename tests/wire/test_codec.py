"""Reading what servers send: strict first, lenient second, and never an exception of another kind."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from luthier.tools import Envelope
from luthier.wire.codec import Message, encode, read, value
from luthier.wire.repair import UnreadableError, repair

_any = msgspec.json.Decoder()


def results(frame: bytes) -> list[tuple[Any, Any]]:
    """Ids and results of the messages in a frame."""
    messages, _ = read(frame)
    return [
        (message.id, None if message.result is UNSET else value(message.result, _any)[0])
        for message in messages
    ]


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"a":' * 50_000)
@example(b"\xef\xbb\xbf")
@example(b'{"id":1,"result":"\\ud800\\"}')
def test_reading_arbitrary_bytes_gives_messages_or_says_that_it_cannot(frame: bytes) -> None:
    try:
        messages, notes = read(frame)
    except UnreadableError:
        return
    assert messages
    assert all(isinstance(message, Message) for message in messages)
    assert all(isinstance(note, str) for note in notes)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_like)
def test_repairing_what_is_strict_already_changes_nothing(anything: Any) -> None:
    data = msgspec.json.encode(anything)
    assert repair(data) == (data, ())


@given(json_like)
def test_a_repaired_text_can_always_be_decoded_strictly(anything: Any) -> None:
    import json

    data = json.dumps([anything, float("nan"), "\ud800"]).encode()
    fixed, notes = repair(data)
    assert msgspec.json.decode(fixed)[1:] == [None, "\ufffd"]
    assert notes == ("lone surrogates were replaced", "NaN was read as null")


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        pytest.param(b'\xef\xbb\xbf{"id":1,"result":2}', [(1, 2)], id="byte order mark"),
        pytest.param(b'\xef\xbb\xbf {"id":1,"result":2}\r', [(1, 2)], id="byte order mark, space and CR"),
        pytest.param(
            b'{"id":1,"result":[NaN,Infinity,-Infinity]}', [(1, [None] * 3)], id="NaN and infinities"
        ),
        pytest.param(b'{"id":1,"result":[1e999,-1e999]}', [(1, [None, None])], id="beyond a double"),
        pytest.param(b'{"id":1,"result":%d}' % 10**40, [(1, 10**40)], id="a large integer is exact"),
        pytest.param(b'{"id":1,"result":[' + b"9" * 5000 + b"]}", [(1, [None])], id="an absurd integer"),
        pytest.param(b'{"id":1,"result":"a\\ud83dz"}', [(1, "a\ufffdz")], id="lone high surrogate"),
        pytest.param(b'{"id":1,"result":"a\\uDE00z"}', [(1, "a\ufffdz")], id="lone low surrogate"),
        pytest.param(
            b'{"id":1,"result":"\\ud83d\\ude00\\ud83d"}', [(1, "\U0001f600\ufffd")], id="a pair stays"
        ),
        pytest.param(b'{"id":1,"result":"\\\\ud83d\xff"}', [(1, "\\ud83d\ufffd")], id="an escaped backslash"),
        pytest.param(b'{"id":1,"result":"caf\xe9"}', [(1, "caf\ufffd")], id="a byte that is not UTF-8"),
        pytest.param(
            b'{"id":1,"result":"a\x01b\tc"}', [(1, "a\x01b\tc")], id="control characters in a string"
        ),
        pytest.param(b'[{"id":1,"result":2},{"id":3,"result":4}]', [(1, 2), (3, 4)], id="a batch"),
        pytest.param(b'[{"id":1,"result":2},7,null]', [(1, 2)], id="a batch with what is no message"),
        pytest.param(b'[{"id":1,"result":NaN}]', [(1, None)], id="a batch with NaN"),
        pytest.param(
            b'{"id":1,"result":2} {"id":3,"result":4}', [(1, 2), (3, 4)], id="no newline between two"
        ),
        pytest.param(b'done {"jsonrpc":"2.0","id":1,"result":2}', [(1, 2)], id="text before it on its line"),
        pytest.param(b'[1] {"jsonrpc":"2.0","id":1,"result":2}', [(1, 2)], id="a bracketed word before it"),
        pytest.param(b'{"id":1,"result":2}, done', [(1, 2)], id="text after it on its line"),
        pytest.param(b'{"x":{"jsonrpc":"2.0","id":1,"result":2}', [(1, 2)], id="a broken object before it"),
    ],
)
def test_a_faulty_frame_is_read_in_the_way_that_loses_least(
    frame: bytes, expected: list[tuple[Any, Any]]
) -> None:
    assert results(frame) == expected


@pytest.mark.parametrize(
    "frame",
    [b"Starting v1", b"[INFO] up", b"{", b'"text"', b"17", b"[]", b"[1,2]", b"{oops}", b"\xff\xfe", b"[{]"],
    ids=repr,
)
def test_what_is_no_message_is_said_to_be_unreadable(frame: bytes) -> None:
    with pytest.raises(UnreadableError):
        read(frame)


def test_every_repair_is_noted() -> None:
    _, notes = read(b'x {"jsonrpc":"2.0","id":1,"result":["\\ud800\xff",NaN,1e999]} y')
    assert set(notes) == {
        "other text stood before it on its line",
        "other text stood after it on its line",
        "bytes that are not UTF-8 were replaced",
        "lone surrogates were replaced",
        "NaN was read as null",
        "a number beyond all bounds was read as null",
    }


@pytest.mark.parametrize("depth", [*range(100, 1500, 50)])
def test_deep_nesting_is_read_or_refused_and_nothing_else(depth: int) -> None:
    deep = b"[" * depth + b"NaN" + b"]" * depth
    for reader in (repair, read, lambda data: value(data, _any)):
        with contextlib.suppress(UnreadableError):
            reader(deep if reader is not read else b'{"id":1,"result":' + deep + b"}")


def test_a_value_that_is_strict_json_has_no_notes() -> None:
    assert value(b'{"a":1}', _any) == ({"a": 1}, ())


def test_a_value_of_the_wrong_shape_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        value(b"[1]", msgspec.json.Decoder(Message))


@pytest.mark.parametrize("raw", [b"{} x", b"", b"[" * 5000], ids=["more after it", "nothing", "too deep"])
def test_a_value_that_is_no_json_is_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        value(raw, _any)


def test_a_message_is_written_on_one_line_whatever_it_holds() -> None:
    written = encode({"a": "x\ny\u2028", "b": [1, 2.5, None]})
    assert b"\n" not in written
    assert msgspec.json.decode(written) == {"a": "x\ny\u2028", "b": [1, 2.5, None]}


def test_mappings_are_written_as_objects() -> None:
    envelope = Envelope({"tool": "t", "server": "s", "content": 1, "duration": 2.0, "isError": False})
    assert msgspec.json.decode(encode({"x": envelope}))["x"]["content"] == 1
    assert b"\\ud800" in encode({"x": envelope, "y": "\ud800"})


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    assert encode({"a": "\ud800"}) == b'{"a":"\\ud800"}'


def test_nan_is_never_written() -> None:
    assert encode({"a": float("nan")}) == b'{"a":null}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"a": float("nan"), "b": "\ud800"})


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form"):
        encode({"a": object()})
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        encode({"a": endless})
