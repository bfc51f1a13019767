"""The one HTTP client of a manager: pooled, bounded while it reads, and never sent elsewhere by a server.

It asks the servers that it is given and hands back answers whose bodies are counted as they come, unpacked.
It follows no redirect to another origin, keeps no cookies, and asks again only with fresh credentials. Each
URL is judged before it is asked, a redirect's too, and each address before it is connected to, by the `reach`
of its target.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from luthier._version import __version__
from luthier.errors import WireError
from luthier.web import Reach, url_fault
from luthier.wire.http import facts
from luthier.wire.http.authorizer import OutgoingHttp
from luthier.wire.http.connector import connector
from luthier.wire.http.inflate import ACCEPTED, Inflater, unpacker
from luthier.wire.http.proxies import proxy_for
from luthier.wire.http.target import laid_over, redirected

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import aiohttp
    from aiohttp.abc import AbstractResolver
    from yarl import URL

    from luthier.wire.http.facts import Asked
    from luthier.wire.http.target import HttpTarget, TlsFiles

PER_ORIGIN = 128
"""Connections to one origin at most; more requests wait for one to become free."""

REDIRECTS = 5

RENEWALS = 2
"""Times that a request is sent again with other credentials: after a login it may still lack a scope."""

HEADER_BYTES = 16 * 1024
_WAYS_KEPT = 1024
_READ_AHEAD = 256 * 1024


class HttpClient:
    """Lives in one event loop. `environ` says which proxies there are; None: the process's own.

    `resolver` None: names are looked up as the system does.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        per_origin: int = PER_ORIGIN,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._per_origin = per_origin
        self._resolver = resolver
        self._sessions: dict[tuple[TlsFiles, Reach], aiohttp.ClientSession] = {}
        self._ways: dict[tuple[str, Reach], tuple[URL, str | None]] = {}
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._closed = False

    async def open(
        self, target: HttpTarget, asked: Asked, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Send a request and return when its response begins. Raises WireErrors only.

        Credentials of the target are added to the headers. The caller ends the answer: reads it, or drops it.
        """
        sent: dict[str, str] = {}
        answer = await self._sent(target, asked, method, url, headers, body, sent)
        for _ in range(RENEWALS):
            if target.authorizer is None or answer.status not in (401, 403):
                return answer
            try:
                again = await target.authorizer.challenged(answer.status, answer.headers, sent)
            except BaseException:
                answer.drop()
                raise
            if not again:
                return answer
            answer.drop()
            sent = {}
            answer = await self._sent(target, asked, method, url, headers, body, sent)
        return answer

    async def close(self) -> None:
        """Close all connections. Answers that are still open end in an error."""
        self._closed = True
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    async def _sent(
        self,
        target: HttpTarget,
        asked: Asked,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        sent: dict[str, str],
    ) -> Answer:
        """One request and the redirects that may be followed. `sent` is filled with the credentials used."""
        for _ in range(REDIRECTS):
            if target.authorizer is not None:
                sent.update(await target.authorizer.headers(OutgoingHttp(method, url, body)))
            whole = laid_over(headers, sent) if sent else headers
            answer = await self._one(target, asked, method, url, whole, body)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            location = answer.headers.get("Location", "")
            answer.drop()
            onward = redirected(method, answer.status, url, location) if location else None
            if onward is None:
                why = "is not followed: only the same origin is, with method and body"
                raise facts.redirect_error(target, asked, answer.status, url, location, why=why)
            url = onward
        raise facts.redirect_error(target, asked, answer.status, url, location, why="goes on without end")

    async def _one(
        self, target: HttpTarget, asked: Asked, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        try:
            address, proxy = self._ways.get((url, target.reach)) or self._way(target, asked, url)
            proxy = target.proxy or proxy
            # What a proxy looks up cannot be seen; where it stands itself is its user's own word.
            reach = target.reach if proxy is None else Reach.any
            session = self._sessions.get((target.tls, reach)) or self._session(target, reach)
            response = await session.request(
                method,
                address,
                data=body or None,
                headers=headers,
                allow_redirects=False,
                proxy=proxy,
                timeout=self._timeouts.get(target.timeout) or self._timeout(target.timeout),
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  (each is told as what it is, below)
            broken = error
        else:
            return Answer(target, asked, response)
        # Not from within the handler: some errors of the library hold the request with all its headers.
        raise facts.from_aiohttp(target, asked, broken) from facts.cause(broken)

    def _way(self, target: HttpTarget, asked: Asked, url: str) -> tuple[URL, str | None]:
        """The address as it goes out, kept as it is written, and the proxy for it. Raises ConnectError."""
        from yarl import URL

        fault = url_fault(url, target.reach)
        if fault is not None:
            raise facts.refused(target, asked, url, fault)
        if len(self._ways) >= _WAYS_KEPT:
            self._ways.clear()
        way = self._ways[url, target.reach] = URL(url, encoded=True), proxy_for(url, self._environ)
        return way

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        """So long a connection may take to stand, TLS included; all else is bounded by whoever asks."""
        import aiohttp

        made = self._timeouts[seconds] = aiohttp.ClientTimeout(total=None, sock_connect=seconds)
        return made

    def _session(self, target: HttpTarget, reach: Reach) -> aiohttp.ClientSession:
        import aiohttp

        if self._closed:
            raise ValueError("the client is closed")
        made = connector(target.tls, reach, per_origin=self._per_origin, resolver=self._resolver)
        session = self._sessions[target.tls, reach] = aiohttp.ClientSession(
            connector=made,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"luthier/{__version__}", "Accept-Encoding": ACCEPTED},
            auto_decompress=False,
            read_bufsize=_READ_AHEAD,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
        )
        return session


class Answer:
    """A response that has begun: its body is still on the way, and must be read to its end or dropped."""

    __slots__ = ("_asked", "_inflater", "_response", "_target", "headers", "status")

    def __init__(self, target: HttpTarget, asked: Asked, response: aiohttp.ClientResponse) -> None:
        self._target = target
        self._asked = asked
        self._response = response
        self._inflater: Inflater | None = None
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        encoding = self.headers.get("Content-Encoding")
        if encoding is not None:
            try:
                self._inflater = unpacker(encoding)
            except ValueError as error:
                self.drop()
                raise facts.unreadable(target, asked, str(error)) from None

    @property
    def ok(self) -> bool:
        return self.status // 100 == 2  # noqa: PLR2004  (a success, by the first digit)

    @property
    def kind(self) -> str:
        """The media type, without parameters, in lower case."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def drop(self) -> None:
        """End it here, unread."""
        self._response.close()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, unpacked. Raises WireErrors. Dropped when it is not read to its end."""
        content, inflater = self._response.content, self._inflater
        try:
            while chunk := await content.readany():
                if inflater is None:
                    yield chunk
                else:
                    for piece in inflater.feed(chunk):
                        yield piece
            if inflater is not None and not inflater.complete:
                raise ValueError("it ends before it is complete")  # noqa: TRY301
        except Exception as error:
            raise self._broken(error) from error
        except BaseException:
            self.drop()
            raise

    async def read(self) -> bytes:
        """The whole body, as far as it is not larger than a message may be. Raises WireErrors."""
        content, limit = self._response.content, self._target.max_message_bytes
        pieces: list[bytes] = []
        if self._inflater is None:  # nearly always, and it comes in one piece
            try:
                first = await content.readany()
            except Exception as error:
                raise self._broken(error) from error
            except BaseException:
                self.drop()
                raise
            if content.at_eof() and len(first) <= limit:
                return first
            pieces.append(first)
        size = sum(map(len, pieces))
        async for chunk in self.chunks():
            pieces.append(chunk)
            size += len(chunk)
            if size > limit:
                break
        if size > limit:
            self.drop()
            raise facts.too_large(self._target, self._asked)
        return b"".join(pieces)

    async def beginning(self, limit: int = 4 * facts.EXCERPT) -> bytes:
        """The first bytes of a body that says why; what cannot be read is left out."""
        begun = bytearray()
        with contextlib.suppress(WireError):
            async for chunk in self.chunks():
                begun += chunk
                if len(begun) >= limit:
                    break
        self.drop()
        return bytes(begun[:limit])

    async def error(self) -> WireError:
        """What this answer means, being no success."""
        return self.error_of(await self.beginning())

    def error_of(self, body: bytes) -> WireError:
        """The same, its body having been read."""
        reason = self._response.reason or ""
        return facts.status_error(self._target, self._asked, self.status, reason, self.headers, body)

    def _broken(self, error: Exception) -> WireError:
        self.drop()
        if isinstance(error, ValueError):
            return facts.unreadable(self._target, self._asked, f"it does not unpack: {error}")
        return facts.from_aiohttp(self._target, self._asked, error)
