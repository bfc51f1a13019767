"""What is connected to: the addresses that were judged and no others, under the name that was asked for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.abc import AbstractResolver

from luthier.errors import ConnectError
from luthier.web import Reach
from luthier.wire.http import HttpClient, HttpTarget, TlsFiles
from luthier.wire.http.connector import RefusedAddressError, judge, sockets
from luthier.wire.http.facts import Asked
from tests.connect.canary import Names
from tests.faults.http.certificates import Authority
from tests.wire.http.support import Site, bounded, modern

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aiohttp.abc import ResolveResult

PING = Asked(method="ping")


def found(*addresses: str) -> list[Any]:
    return [{"host": address} for address in addresses]


class Answers(AbstractResolver):
    """Says what it is given, or raises it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:  # noqa: ARG002
        if isinstance(self._answer, BaseException):
            raise self._answer
        answer: list[ResolveResult] = self._answer
        return answer

    async def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize(
    ("addresses", "reach"),
    [
        (("1.1.1.1", "2606:4700::1111"), Reach.public),
        (("127.0.0.1", "fd00::1"), Reach.private),
        (("127.0.0.1", "1.1.1.1"), Reach.any),
    ],
)
def test_addresses_that_may_all_be_connected_to_are_given_on(addresses: Sequence[str], reach: Reach) -> None:
    assert judge("a.example", found(*addresses), reach) == found(*addresses)


@pytest.mark.parametrize(
    ("addresses", "reach"),
    [
        (("1.1.1.1", "127.0.0.1"), Reach.public),
        (("::1", "1.1.1.1"), Reach.public),
        (("1.1.1.1", "nonsense"), Reach.public),
        (("127.0.0.1", "1.1.1.1"), Reach.private),
    ],
)
def test_one_address_that_is_refused_refuses_the_name(addresses: Sequence[str], reach: Reach) -> None:
    with pytest.raises(RefusedAddressError, match=r"a\.example (is|stands)") as caught:
        judge("a.example", found(*addresses), reach)
    assert caught.value.fault.why in str(caught.value)


def test_a_name_without_an_address_is_not_connected_to() -> None:
    with pytest.raises(OSError, match="stands for no address"):
        judge("a.example", [], Reach.any)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("secret"), "RuntimeError"),
        (TimeoutError(), "TimeoutError"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        ([], "it stands for no address"),
        (None, "it stands for no address"),
        ([{}], "KeyError"),
        (7, "TypeError"),
    ],
)
async def test_a_lookup_that_fails_in_any_way_is_no_connection_and_may_be_tried_again(
    answer: Any, said: str
) -> None:
    client = HttpClient({}, resolver=Answers(answer))
    url = "https://a.example/"
    with pytest.raises(ConnectError, match=f"its name: {said}") as caught:
        await bounded(client.open(HttpTarget(server="far", url=url), PING, "GET", url, {}, b""))
    assert "secret" not in str(caught.value)
    assert caught.value.retryable
    assert not caught.value.sent
    await client.close()


@pytest.mark.parametrize("host", [None, b"1.1.1.1", ""])
async def test_a_lookup_that_gives_what_is_no_address_is_refused(host: Any) -> None:
    client = HttpClient({}, resolver=Answers([{"host": host}]))
    url = "https://a.example/"
    with pytest.raises(ConnectError, match="no address"):
        await bounded(client.open(HttpTarget(server="far", url=url), PING, "GET", url, {}, b""))
    await client.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_socket_is_opened_for_an_address_that_is_refused_whoever_found_it(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address: Any = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, 9))
    with pytest.raises(RefusedAddressError, match="is private or this machine's own"):
        sockets(Reach.public)(address)
    with sockets(Reach.any)(address) as opened:
        assert (opened.family, opened.type) == (family, socket.SOCK_STREAM)


async def test_an_address_is_connected_to_and_the_name_is_what_the_server_is_asked_by(tmp_path: Path) -> None:
    authority, asked_for = Authority(tmp_path), []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("mcp.example"))
    tls.sni_callback = lambda _, name, __: asked_for.append(name)
    names = Names({"mcp.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    client = HttpClient({}, resolver=names)

    async def ask(host: str) -> bytes:
        url = f"https://{host}:{site.port}/mcp"
        trusted = TlsFiles(ca=str(authority.file))
        target = HttpTarget(server="far", url=url, tls=trusted, reach=Reach.any)
        answer = await client.open(target, PING, "POST", url, {}, b'{"id": 1, "method": "ping"}')
        return await answer.read()

    async with Site(modern, tls=tls) as site, asyncio.timeout(20):
        assert b"result" in await ask("mcp.example")
        assert site.asked[0].headers["host"] == f"mcp.example:{site.port}"
        with pytest.raises(ConnectError, match="TLS"):
            await ask("other.example")
        await client.close()
    assert asked_for == ["mcp.example", "other.example"]
    assert len(site.asked) == 1
