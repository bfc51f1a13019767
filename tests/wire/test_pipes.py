"""Pipes on the loop: nothing lost, nothing blocked, one write for what is said in one turn."""

from __future__ import annotations

import asyncio
import os

import pytest

from luthier.wire.pipes import HIGH_WATER, LOW_WATER, PipeReader, PipeWriter
from tests.wire.support import bounded


def congested(writer: PipeWriter) -> bool:
    return writer.congested


class Far:
    """The other end of a writer's pipe, read by hand."""

    def __init__(self) -> None:
        self.descriptor, self.near = os.pipe()
        self.broken = 0
        self.writer = PipeWriter(self.near, self._broke)

    def _broke(self) -> None:
        self.broken += 1

    def read(self, size: int = 1 << 20) -> bytes:
        os.set_blocking(self.descriptor, False)
        try:
            return os.read(self.descriptor, size)
        except BlockingIOError:
            return b""

    async def read_all(self, size: int) -> bytes:
        data = b""
        async with asyncio.timeout(20):
            while len(data) < size:
                data += self.read()
                await asyncio.sleep(0)
        return data

    def close(self) -> None:
        self.writer.close()
        os.close(self.descriptor)


async def test_the_first_line_of_a_turn_goes_out_at_once_and_the_others_together() -> None:
    far = Far()
    far.writer.write(b"one")
    assert far.read() == b"one\n"
    far.writer.write(b"two")
    far.writer.write(b"three")
    assert far.read() == b""
    await asyncio.sleep(0)
    assert far.read() == b"two\nthree\n"
    far.writer.write(b"four")
    assert far.read() == b"four\n"
    far.close()


async def test_more_than_the_pipe_holds_is_written_as_it_is_read() -> None:
    far = Far()
    lines = [bytes([65 + number]) * 300_000 for number in range(8)]
    for line in lines:
        far.writer.write(line)
    assert congested(far.writer)
    whole = b"".join(line + b"\n" for line in lines)
    assert await far.read_all(len(whole)) == whole
    assert not congested(far.writer)
    far.writer.write(b"last")
    await asyncio.sleep(0)
    assert far.read() == b"last\n"
    far.close()


async def test_senders_are_held_while_too_much_waits_and_let_go_together() -> None:
    far = Far()
    far.writer.write(b"x" * (HIGH_WATER * 4))
    waiting = [asyncio.create_task(far.writer.drain()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    size = 0
    while not waiting[1].done():
        size += len(far.read(8192))
        await asyncio.sleep(0)
    await bounded(asyncio.gather(*waiting[1:]))
    assert HIGH_WATER * 4 - size <= LOW_WATER + 65536
    await bounded(far.writer.drain())
    far.close()


async def test_a_reader_that_has_gone_is_told_once_and_lines_are_dropped() -> None:
    far = Far()
    os.close(far.descriptor)
    far.writer.write(b"one")
    assert far.broken == 1
    far.writer.write(b"two")
    assert far.broken == 1
    far.writer.close()


async def test_a_reader_that_goes_while_much_waits_lets_all_senders_go() -> None:
    far = Far()
    far.writer.write(b"x" * (HIGH_WATER * 2))
    waiting = asyncio.create_task(far.writer.drain())
    await asyncio.sleep(0)
    os.close(far.descriptor)
    await bounded(waiting)
    assert (far.broken, far.writer.congested) == (1, False)


async def test_closing_lets_all_senders_go() -> None:
    far = Far()
    far.writer.write(b"x" * (HIGH_WATER * 2))
    far.writer.write(b"more")
    waiting = asyncio.create_task(far.writer.drain())
    await asyncio.sleep(0)
    far.close()
    await bounded(waiting)
    await asyncio.sleep(0)
    assert far.broken == 0


@pytest.mark.parametrize("size", [1, 1000, 3_000_000])
async def test_a_reader_hands_over_everything_and_then_the_end_once(size: int) -> None:
    descriptor, near = os.pipe()
    got, ended = bytearray(), asyncio.Event()
    reader = PipeReader(descriptor, got.extend, ended.set)
    body = os.urandom(size)

    def fill() -> None:
        with os.fdopen(near, "wb") as pipe:
            pipe.write(body)

    await bounded(asyncio.to_thread(fill))
    await bounded(ended.wait())
    assert bytes(got) == body
    reader.close()


async def test_what_is_in_the_pipe_can_be_read_without_waiting_for_its_end() -> None:
    descriptor, near = os.pipe()
    got, ends = list[bytes](), list[int]()
    reader = PipeReader(descriptor, got.append, lambda: ends.append(1))
    os.write(near, b"all")
    reader.read_rest()
    assert (got, ends) == ([b"all"], [])
    os.close(near)
    reader.read_rest()
    reader.read_rest()
    assert ends == [1]


async def test_reading_the_rest_is_bounded_where_somebody_writes_for_ever() -> None:
    descriptor, near = os.pipe()
    os.set_blocking(near, False)
    sizes: list[int] = []

    def again(data: bytes) -> None:
        sizes.append(len(data))
        os.write(near, b"more")

    reader = PipeReader(descriptor, again, lambda: None)
    os.write(near, b"more")
    reader.read_rest()
    assert len(sizes) == 256
    reader.close()
    os.close(near)


async def test_a_pipe_that_cannot_be_read_has_ended() -> None:
    descriptor, near = os.pipe()
    ends: list[int] = []
    reader = PipeReader(near, lambda _: None, lambda: ends.append(1))  # the end that is for writing
    reader.read_rest()
    assert ends == [1]
    os.close(descriptor)
