"""Ways to a server: TLS, proxies, names, private addresses, and a client that is closed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import ConnectError
from luthier.web import Reach
from luthier.wire.http import HttpClient, TlsFiles
from luthier.wire.http.facts import Asked
from tests.faults.http.certificates import Authority
from tests.wire.http.support import Answering, Site, bounded, call, legacy, modern, session_at, target_of
from tests.wire.http.support import Asked as Came

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

PING = Asked(method="ping")


async def fails(url: str, **fields: Any) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        async with session_at(url, "auto", **fields):
            pass
    return caught.value


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def by_tls(authority: Authority, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("127.0.0.1"))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.file)
    return context


async def test_a_certificate_is_believed_if_its_authority_is_named(authority: Authority) -> None:
    async with Site(modern, tls=by_tls(authority)) as site:
        error = await fails(site.url)
        assert "TLS" in error.message
        assert "`tls: {ca: FILE}`" in error.hint
        assert not error.retryable
        for tls in (TlsFiles(ca=str(authority.file)), TlsFiles(verify=False)):
            async with session_at(site.url, tls=tls) as session:
                assert await call(session) == "hi"


async def test_a_certificate_of_ours_is_shown(authority: Authority) -> None:
    cert, key = (str(file) for file in authority.issue("us"))
    async with Site(modern, tls=by_tls(authority, asks=True)) as site:
        tls = TlsFiles(ca=str(authority.file), cert=cert, key=key)
        async with session_at(site.url, tls=tls) as session:
            assert await call(session) == "hi"
        with pytest.raises(ConnectError):
            async with session_at(site.url, tls=TlsFiles(ca=str(authority.file))):
                pass


async def test_files_that_cannot_be_used_are_named() -> None:
    error = await fails("https://127.0.0.1:1/mcp", tls=TlsFiles(ca="/no/such/file"))
    assert "files under `tls`" in error.message
    assert not error.retryable


async def test_tls_to_a_server_that_speaks_none_is_no_connection() -> None:
    def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        error = await fails(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    assert "cannot be reached" in error.message
    assert "TLS" in error.message


async def test_a_name_that_nobody_knows() -> None:
    error = await fails("http://nobody.invalid/mcp")
    assert "cannot be reached at http://nobody.invalid/mcp: its name" in error.message
    assert error.retryable


@pytest.mark.parametrize("url", ["ftp://host/mcp", "http:///mcp", "http://host:99999/mcp"])
async def test_an_address_that_is_none(url: str) -> None:
    error = await fails(url)
    assert "is not asked: it " in error.message
    assert not error.retryable


async def test_requests_go_through_the_proxy_that_is_named() -> None:
    seen: list[str] = []

    def proxy(asked: Came, answering: Answering) -> None:
        seen.append(asked.path)
        modern(asked, answering)

    async with Site(proxy) as site:
        async with session_at("http://far.example/mcp", proxy=f"http://127.0.0.1:{site.port}") as session:
            assert await call(session) == "hi"
        environ = {"HTTP_PROXY": f"127.0.0.1:{site.port}", "NO_PROXY": "10.0.0.0/8,*.corp,???"}
        async with session_at("http://far.example/mcp", environ=environ) as session:
            assert await call(session) == "hi"
        assert set(seen) == {"http://far.example/mcp"}


@pytest.mark.parametrize(("status", "retryable"), [(407, False), (502, True)])
async def test_what_a_proxy_says_is_told_as_its_word(status: int, retryable: bool) -> None:  # noqa: FBT001
    async with Site(lambda _, answering: answering.give(status)) as site:
        error = await fails("https://far.example/mcp", proxy=f"http://127.0.0.1:{site.port}")
        assert f"its proxy answered HTTP {status}" in error.message
        assert error.retryable is retryable


async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with Site() as site:
        pass
    error = await fails("http://far.example/mcp", proxy=f"http://127.0.0.1:{site.port}")
    assert "its proxy" in error.message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "[::1]", "0x7f000001", "2130706433"])
async def test_private_addresses_are_refused_in_every_spelling(host: str) -> None:
    async with Site(modern) as site:
        error = await fails(f"http://{host}:{site.port}/mcp", reach=Reach.public)
        assert "it is private or this machine's own" in error.message
        assert "allow_private" in error.hint
        assert site.asked == []


async def test_a_server_that_takes_no_connection_is_given_up_after_its_time() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    assert (await fails(f"http://127.0.0.1:{port}/mcp")).retryable


@asynccontextmanager
async def mute() -> AsyncIterator[int]:
    """The port of something that takes connections and says nothing."""

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while await reader.read(1024):
                pass

    async with await asyncio.start_server(taken, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def full() -> AsyncIterator[int]:
    """The port of something whose queue of connections is full, so that no more come to stand."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.parametrize(("place", "scheme"), [(mute, "https"), (full, "http"), (full, "https")])
async def test_a_connection_that_never_comes_to_stand_is_bounded_by_the_servers_timeout(
    place: Callable[[], AbstractAsyncContextManager[int]], scheme: str
) -> None:
    client = HttpClient({})
    async with place() as port, Site(legacy) as site:
        other = target_of(site.url, timeout=60.0)  # the time of one server is not that of another
        (await bounded(client.open(other, PING, "GET", site.url, {}, b""))).drop()
        url = f"{scheme}://127.0.0.1:{port}/mcp"
        with pytest.raises(ConnectError, match=r"cannot be reached.*no connection within 0\.3 s") as caught:
            await bounded(client.open(target_of(url, timeout=0.3), PING, "GET", url, {}, b""), 5)
        assert caught.value.retryable
        await bounded(client.close())


@pytest.mark.parametrize("kind", ["auto", "http", "sse", "rest"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_url_that_is_silent_is_named_with_its_address_and_not_as_a_process(
    kind: str, scheme: str
) -> None:
    async with mute() as port:
        with pytest.raises(ConnectError) as caught:
            async with session_at(f"{scheme}://127.0.0.1:{port}/mcp?key=hidden", kind, timeout=0.3):
                pass
    assert caught.value.message == (
        f"Server 'far' did not answer within 0.3 s at {scheme}://127.0.0.1:{port}/mcp."
    )
    assert caught.value.hint == "Check its `url`, or raise `timeout_ms` of that server."


async def test_a_closed_client_asks_nothing_and_closing_twice_is_harmless() -> None:
    client = HttpClient({})
    async with Site(legacy) as site:
        answer = await bounded(client.open(target_of(site.url), PING, "GET", site.url, {}, b""))
        answer.drop()
        await bounded(client.close())
        await bounded(client.close())
        with pytest.raises(ConnectError, match="client is closed"):
            await bounded(client.open(target_of(site.url), PING, "GET", site.url, {}, b""))


async def test_connections_to_one_origin_are_bounded_and_used_again() -> None:
    busy, most, ports = 0, 0, set()

    async def count(asked: Came, answering: Answering) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        ports.add(answering.writer.get_extra_info("peername")[1])
        await asyncio.sleep(0)
        answering.give(200, b"{}")
        busy -= 1

    client = HttpClient({}, per_origin=3)
    async with Site(count) as site:
        target = target_of(site.url)

        async def once() -> bytes:
            return await (await client.open(target, PING, "POST", site.url, {}, b"{}")).read()

        assert await bounded(asyncio.gather(*(once() for _ in range(30)))) == [b"{}"] * 30
        await bounded(client.close())
    assert most <= 3
    assert len(ports) <= 3
