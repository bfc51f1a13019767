"""One line within the limit of a message neither holds up the loop of all servers nor fills memory."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest

from luthier.clock import FakeClock
from luthier.errors import ProtocolError
from luthier.wire.codec import MESSAGES, decode, read, value
from luthier.wire.repair import LENIENT_BYTES, TooMuchError
from luthier.wire.results import read_reply
from tests.wire.hostile import FRAMES, RESULTS
from tests.wire.support import open_link

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = 1.0
"""Seconds for one frame, however slow the machine: usually it is a twentieth of that."""

MEMORY = 64 * 1024 * 1024
"""Bytes for one frame of a sixth of that."""

_any = msgspec.json.Decoder()


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
async def test_a_hostile_frame_is_done_with_at_once(frame: bytes) -> None:
    link, transport, told = await open_link(FakeClock())
    request = link.begin("tools/call", {}, phase="call", tool="t")
    link.begin("tools/call", {}, phase="call", tool="t")
    assert seconds(lambda: transport.give(frame)) < CPU
    assert peak(lambda: transport.give(frame)) < MEMORY
    transport.give(b'{"jsonrpc":"2.0","id":2,"result":1}')
    assert told
    assert request.answer.done() == any(
        kind in frame[:40] for kind in (b'"id":1,"result"', b'"id":1,"error"')
    )


@pytest.mark.parametrize("name", ["quotes in an answer", "lone surrogates", "NaN in content", "a batch"])
async def test_its_request_fails_and_is_told_why(name: str) -> None:
    link, transport, _ = await open_link(FakeClock())
    request = link.begin("tools/call", {}, phase="call", tool="t")
    link.begin("tools/call", {}, phase="call", tool="t")
    transport.give(FRAMES[name])
    outcome = request.answer.result()
    assert isinstance(outcome, ProtocolError)
    assert any(
        reason in str(outcome)
        for reason in ("no more than 1,048,576 bytes", "more than 1,048,576 bytes", "too many escapes")
    )


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_a_hostile_result_is_refused_at_once(result: bytes) -> None:
    def reading() -> None:
        with pytest.raises(ProtocolError, match=r"more than 1,000,000 lists|is a list of more than 100,000"):
            read_reply(msgspec.Raw(result), (), server="s", tool="t", modern=False)

    assert seconds(reading) < CPU


@pytest.mark.parametrize("size", [LENIENT_BYTES // 2, LENIENT_BYTES - 100])
def test_up_to_its_bound_a_text_is_read_leniently(size: int) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":["' + b"x" * (size - 50) + b'",NaN]}'
    ([message], notes) = read(frame)
    assert notes == ("NaN was read as null",)
    assert value(message.result or b"", _any)[0][1:] == [None]


def test_above_it_only_strict_json_is_read() -> None:
    with pytest.raises(TooMuchError, match="it is not strict JSON"):
        read(b'{"jsonrpc":"2.0","id":1,"result":["' + b"x" * LENIENT_BYTES + b'",NaN]}')


@pytest.mark.parametrize(
    ("odd", "read_as"),
    [(b"\\ud83d", "\ufffd"), (b"\xe9", "\ufffd"), (b"\\\\ud83d", "\\ud83d")],
    ids=["half an emoji", "a byte that is not UTF-8", "an escaped backslash"],
)
def test_single_characters_are_repaired_at_any_length(odd: bytes, read_as: str) -> None:
    text = b"x" * 3 * LENIENT_BYTES
    ([message], _) = read(b'{"jsonrpc":"2.0","id":1,"result":"' + text + odd + b'"}')
    found, _ = value(message.result or b"", _any)
    assert found[-10:] == ("x" * 10 + read_as)[-10:]


def test_a_large_text_in_another_encoding_is_refused() -> None:
    with pytest.raises(TooMuchError, match="in another encoding"):
        value(b'"' + b"\xe9" * 2 * LENIENT_BYTES + b'"', _any)


def test_large_messages_are_read_like_small_ones() -> None:
    text = "x" * LENIENT_BYTES
    answer = decode(msgspec.json.encode({"jsonrpc": "2.0", "id": "7", "result": text}))
    assert (answer.id, answer.error, value(answer.result or b"", _any)[0]) == ("7", msgspec.UNSET, text)
    fault = decode(msgspec.json.encode({"id": 7, "error": {"code": 1, "message": text}}))
    assert (fault.jsonrpc, fault.error) == (msgspec.UNSET, {"code": 1, "message": text})
    told = decode(msgspec.json.encode({"jsonrpc": "2.0", "method": "m", "params": {"text": text}}))
    assert (told.id, told.method, value(told.params or b"", _any)[0]) == (msgspec.UNSET, "m", {"text": text})


@pytest.mark.parametrize(
    "frame",
    [b'{"id":1,"result":NaN} ' * 20_000, b"[" + b'{"id":1},' * 20_000 + b"1]"],
    ids=["glued", "batch"],
)
def test_of_very_many_messages_in_one_frame_the_first_are_read(frame: bytes) -> None:
    messages, notes = read(frame)
    assert len(messages) == MESSAGES
    assert "more than 1,000 stood on its line, of which the rest was passed over" in notes


def test_the_collector_runs_again_after_a_large_value() -> None:
    import gc

    gc.disable()
    try:
        value(b'["' + b"x" * LENIENT_BYTES + b'"]', _any)
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(ValueError, match="Expected"):
        value(b'["' + b"x" * LENIENT_BYTES + b'"]', msgspec.json.Decoder(int))
    assert gc.isenabled()
