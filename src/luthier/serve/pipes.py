"""Serving over the pipes of this process: stdin and stdout are the wire, and nothing else gets at them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

import msgspec

from luthier.given import given_json
from luthier.redaction import logger
from luthier.serve.messages import INVALID_REQUEST, PARSE_ERROR, error_of, id_of
from luthier.serve.offers import STDIO
from luthier.serve.protocol import protocol_server
from luthier.spec.serve import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from luthier.serve.protocol import Files, Offering


AHEAD = 64
"""Lines that are read before they are asked for."""

_NO_MESSAGE = "This is no message of JSON-RPC 2.0"
_log = logger("luthier.serve")


@contextmanager
def claimed_pipes() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The wire, moved out of the way of whoever reads stdin or prints; put back at the end."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        # Not closed: a thread may still be reading when all else has ended.
        yield os.fdopen(reading, "rb", closefd=False), os.fdopen(writing, "wb", closefd=False)
    finally:
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(nothing)


def client_of_pipes(_: Any) -> str:
    """Whoever started this process."""
    return STDIO


async def serve_pipes(
    service: Offering,
    reading: BinaryIO,
    writing: BinaryIO,
    *,
    name: str = "luthier",
    files: Files | None = None,
    limit: int = MAX_BODY_BYTES,
) -> None:
    """Serve whoever started this process, until it closes its end. Messages have at most `limit` bytes."""
    from mcp.server.stdio import stdio_server

    server = protocol_server(service, client_of_pipes, name, files=files)
    out = _Out(writing)
    lines = _Lines(reading, limit, out.refuse)
    try:
        async with stdio_server(cast("Any", lines), cast("Any", out)) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await service.close()


class _Lines:
    """The lines of a stream, read by a thread that nobody has to wait for: a read cannot be called off.

    It reads no further ahead than a few lines; one that is longer than `limit`, or no message, is passed
    over, and `refused` is told its id, a code and why.
    """

    def __init__(
        self, stream: BinaryIO, limit: int, refused: Callable[[str | int | None, int, str], object]
    ) -> None:
        self._stream = stream
        self._limit = limit
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[str | None] = asyncio.Queue()
        self._free = threading.Semaphore(AHEAD)
        threading.Thread(target=self._pump, name="luthier-stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._read.get()
        self._free.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _pump(self) -> None:
        while line := self._stream.readline(self._limit + 1):
            if len(line) > self._limit and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = self._stream.readline(self._limit)
                self._refused(None, INVALID_REQUEST, "The message is too large")
                continue
            if (fault := fault_of(line)) is None:
                self._put(line.decode())
            elif line.strip():
                self._refused(*fault)
        self._put(None)

    def _put(self, line: str | None) -> None:
        self._free.acquire()
        try:
            self._loop.call_soon_threadsafe(self._read.put_nowait, line)
        except RuntimeError:  # the loop has ended while a line was on its way
            return


def fault_of(line: bytes) -> tuple[str | int | None, int, str] | None:
    """Why a line is no message: the id of what would wait for an answer, a code, and what is wrong."""
    from mcp_types import jsonrpc_message_adapter

    try:
        message = given_json(line)
        jsonrpc_message_adapter.validate_python(message, by_name=False)
    except RecursionError:
        return None, PARSE_ERROR, "Parse error: it is nested too deeply"
    except msgspec.DecodeError as error:
        return _id_in(line), PARSE_ERROR, f"Parse error: {error}"
    except ValueError:  # of pydantic
        return id_of(message), INVALID_REQUEST, _NO_MESSAGE
    # With an id of another kind the SDK takes a request for a notification.
    unclear = "method" in message and "id" in message and id_of(message) is None
    return (None, INVALID_REQUEST, _NO_MESSAGE) if unclear else None


def _id_in(line: bytes) -> str | int | None:
    """The id in a text that is JSON to somebody."""
    try:
        return id_of(json.loads(line))
    except (ValueError, RecursionError):
        return None


class _Out:
    """Writes a message at a time; what nobody reads any more is dropped, the end of stdin ends the rest."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def write(self, text: str) -> int:
        return await asyncio.to_thread(self._written, text)

    async def flush(self) -> None:
        """Each message is flushed as it is written."""

    def refuse(self, id: str | int | None, code: int, why: str) -> None:
        """Say of a message that it was passed over."""
        _log.warning("a message was passed over: %s", why)
        self._written(error_of(id, code, why).decode() + "\n")

    def _written(self, text: str) -> int:
        try:
            written: Any = self._stream.write(text.encode("utf-8", "replace"))
            self._stream.flush()
        except BrokenPipeError:
            return 0
        return int(written)
