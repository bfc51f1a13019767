"""Rows about the way to a server: certificates of one's own, and proxies."""

from __future__ import annotations

import dataclasses
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from luthier.errors import ConnectError
from tests.faults.http.certificates import Authority
from tests.faults.http.server import Exchange, HttpServer
from tests.faults.http.table import AUTO, BOTH, own

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.faults.http.bench import HttpBench
    from tests.faults.http.peer import HttpPeer


@asynccontextmanager
async def by_tls(peer: HttpPeer, authority: Authority, *, asks: bool = False) -> AsyncIterator[str]:
    """The peer on a second port, by TLS: its address. `asks`: only for those whom the authority knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("127.0.0.1"))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.file)
    server = HttpServer(peer.server.handler)
    await server.start(tls=context)
    try:
        yield f"https://127.0.0.1:{server.port}/mcp"
    finally:
        await server.stop()


@own("38", "plain", eras=BOTH)
async def an_authority_of_ones_own_is_trusted_where_it_is_named(bench: HttpBench) -> None:
    authority = Authority(bench.root)
    async with by_tls(bench.server, authority) as url:
        async with bench.house(bench.entry(url=url)) as house:
            with pytest.raises(ConnectError) as raised:
                await house.call("echo")
            assert "certificate" in str(raised.value).lower()
            assert "ca" in raised.value.hint
        async with bench.house(bench.entry(url=url, tls={"ca": str(authority.file)})) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
        async with bench.house(bench.entry(url=url, tls={"verify": False})) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}


@own("38", "plain", eras=AUTO)
async def a_certificate_of_the_client_is_shown_to_those_who_ask(bench: HttpBench) -> None:
    authority = Authority(bench.root)
    cert, key = authority.issue("client")
    tls = {"ca": str(authority.file), "cert": str(cert), "key": str(key)}
    async with by_tls(bench.server, authority, asks=True) as url:
        async with bench.house(bench.entry(url=url, tls=tls)) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
        async with bench.house(bench.entry(url=url, tls={"ca": str(authority.file)})) as house:
            with pytest.raises(Exception, match="faulty"):
                await house.call("echo")


@asynccontextmanager
async def proxy_before(peer: HttpPeer) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy behind which the peer is, by whatever name: its address, and whom it was asked for."""
    asked: list[str] = []

    async def handle(exchange: Exchange) -> None:
        parts = urlsplit(exchange.request.target)
        asked.append(parts.netloc)
        exchange.request = dataclasses.replace(exchange.request, target=parts.path)
        await peer.server.handler(exchange)

    server = HttpServer(handle)
    await server.start()
    try:
        yield f"http://127.0.0.1:{server.port}", asked
    finally:
        await server.stop()


@own("39", "plain", eras=BOTH)
async def a_proxy_that_the_entry_names_is_used(bench: HttpBench) -> None:
    async with proxy_before(bench.server) as (proxy, asked):
        async with bench.house(bench.entry(proxy=proxy)) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
        assert set(asked) == {f"127.0.0.1:{bench.server.server.port}"}


@own("39", "plain", eras=AUTO)
async def a_proxy_of_the_environment_is_used_and_odd_exceptions_harm_nobody(bench: HttpBench) -> None:
    async with proxy_before(bench.server) as (proxy, asked):
        environ = {"http_proxy": proxy, "NO_PROXY": "10.0.0.0/8, *.corp, [::1, 300.1.2.3/99,, :80"}
        async with bench.house(bench.entry(url="http://mcp.example/mcp"), environ=environ) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
        assert set(asked) == {"mcp.example"}


@own("39", "plain", eras=AUTO)
async def what_no_proxy_names_is_reached_straight(bench: HttpBench) -> None:
    async with proxy_before(bench.server) as (proxy, asked):
        environ = {"HTTP_PROXY": proxy, "NO_PROXY": "127.0.0.0/8"}
        async with bench.house(environ=environ) as house:
            assert (await house.call("echo", a=1)).content == {"a": 1}
        assert asked == []
