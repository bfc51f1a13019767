"""The wire of `--stdio`, as bytes: lines that are too long, too many, or nothing at all."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.serve import Service
from luthier.serve.pipes import AHEAD, serve_pipes
from tests.serve.house import house

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": ABOUT}


class Host:
    """Whoever started the process: writes lines and reads them."""

    def __init__(self, writing: int, reading: int) -> None:
        self._writing = os.fdopen(writing, "wb")
        self._reading = os.fdopen(reading, "rb")

    async def say(self, *lines: bytes) -> None:
        def written() -> None:
            for line in lines:
                self._writing.write(line + b"\n")
            self._writing.flush()

        await asyncio.to_thread(written)

    async def hear(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await asyncio.to_thread(self._reading.readline))
        return found

    def leave(self) -> None:
        self._writing.close()

    def close(self) -> None:
        self._reading.close()


@asynccontextmanager
async def hosted(root: Path, **more: Any) -> AsyncIterator[Host]:
    theirs, ours = os.pipe(), os.pipe()
    host = Host(theirs[1], ours[0])
    async with house(root) as runtime:
        with os.fdopen(theirs[0], "rb") as reading, os.fdopen(ours[1], "wb") as writing:
            serving = asyncio.create_task(serve_pipes(Service(runtime), reading, writing, **more))
            async with asyncio.timeout(20):
                await host.say(json.dumps(HELLO).encode())
                assert (await host.hear())["id"] == 0
                await host.say(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
                yield host
                host.leave()
                await serving
    host.close()


def ping(id: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode()


async def test_a_message_that_is_too_large_is_refused_and_the_next_one_is_read(tmp_path: Path) -> None:
    async with hosted(tmp_path, limit=1000) as host:
        await host.say(b'{"jsonrpc": "2.0", "id": 5, "method": "' + b"x" * 100_000 + b'"}', ping(6))
        found = [await host.hear(), await host.hear()]
    assert {str(one["id"]) for one in found} == {"None", "6"}
    (refused,) = [one for one in found if one["id"] is None]
    assert "too large" in refused["error"]["message"]


async def test_noise_between_messages_is_passed_over(tmp_path: Path) -> None:
    async with hosted(tmp_path) as host:
        await host.say(b"", b"noise", b"\xff\xfe", b"[1]", b'{"jsonrpc": "2.0"}', ping(1))
        while (found := await host.hear()).get("id") != 1:
            assert "error" in found
    assert found["result"] == {}


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": "\\ud800"}}', -32700, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": NaN}}', -32700, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "id": 8}', -32700, 8),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]}', -32600, "a"),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, None),
        (b"[" * 50_000, -32700, None),
        (b"null", -32600, None),
        (b"noise", -32700, None),
        (b"\xff\xfe", -32700, None),
    ],
)
async def test_what_is_no_message_is_answered_by_its_id_where_it_has_one(
    tmp_path: Path, line: bytes, code: int, id: str | int | None
) -> None:
    async with hosted(tmp_path) as host:
        await host.say(line)
        refused = await host.hear()
    assert (refused["error"]["code"], refused["id"]) == (code, id)


async def test_more_lines_than_are_read_ahead_are_all_answered(tmp_path: Path) -> None:
    many = 3 * AHEAD
    async with hosted(tmp_path) as host:
        saying = asyncio.create_task(host.say(*(ping(number) for number in range(1, many + 1))))
        found = {(await host.hear())["id"] for _ in range(many)}
        await saying
    assert found == set(range(1, many + 1))
