"""The page on this machine that a browser comes back to after a login."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from luthier.clock import Clock, Deadline

if TYPE_CHECKING:
    from types import TracebackType

_PATH = "/callback"
_HEAD = 16 * 1024  # bytes
_SLOW = 10.0  # seconds for a browser to say what it wants
_PAGE = "<!doctype html><meta charset=utf-8><title>Luthier</title><p>{}</p>\n"
_DONE = "You can close this window and go back to the terminal."


class Returned(msgspec.Struct, frozen=True):
    """What the authorization server sent back through the browser; the state was checked."""

    code: str = ""
    issuer: str | None = None
    error: str = ""

    def __repr__(self) -> str:
        return "Returned(…)"


class Callback:
    """`async with Callback(clock) as callback:` listens on 127.0.0.1, at that port if it is free.

    Only a request with the state that is waited for ends the waiting; all others are turned away.
    """

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        self._clock = clock
        self._port = port
        self._server: asyncio.Server | None = None
        self._state = ""
        self._returned: asyncio.Future[Returned] | None = None
        self._talking: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._returned = asyncio.get_running_loop().create_future()
        try:
            self._server = await self._listening(self._port)
        except OSError:
            self._server = await self._listening(0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._talking):
            task.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def _listening(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", port, limit=_HEAD)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}{_PATH}"

    def expect(self, state: str) -> None:
        """Name the login that is waited for, before the browser is sent off."""
        self._state = state

    async def wait(self, seconds: float) -> Returned:
        """Wait for the browser. Raises TimeoutError."""
        if self._returned is None:
            raise RuntimeError("it does not listen yet")
        async with Deadline(self._clock, seconds):
            return await asyncio.shield(self._returned)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._talking.add(task)
        task.add_done_callback(self._talking.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with Deadline(self._clock, _SLOW):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._answered(head.decode("latin-1"))
            writer.write(_response(status, text))
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a browser that came back
        finally:
            writer.close()

    def _answered(self, head: str) -> tuple[str, str]:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        fields = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != _PATH or fields.get("host") != urlsplit(self.address).netloc:
            return "404 Not Found", "There is nothing here."
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self._state or not secrets.compare_digest(
            query.get("state", "").encode(), self._state.encode()
        ):
            return "400 Bad Request", "This is not the login that is waited for."
        if self._returned is not None and not self._returned.done():
            code, issuer, error = query.get("code", ""), query.get("iss"), query.get("error", "")
            self._returned.set_result(Returned(code, issuer, error))
        return "200 OK", _DONE


def _response(status: str, text: str) -> bytes:
    page = _PAGE.format(text).encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(page)}",
        "Cache-Control: no-store",
        "Content-Security-Policy: default-src 'none'",
        "Referrer-Policy: no-referrer",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + page
