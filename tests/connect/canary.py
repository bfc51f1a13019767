"""A listener on this machine that counts whoever connects, and a resolver that says what a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = Callable[[], Sequence[str] | None]

BOUND = 20.0
"""Seconds that any single wait of a test may take."""


def _has_version_6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


HOSTS = ("127.0.0.1", "::1") if _has_version_6() else ("127.0.0.1",)
"""This machine's own addresses, as far as it has them."""


class Canary:
    """Listens at one port of 127.0.0.1 and, where it is, of ::1. Who connects is counted and turned away."""

    def __init__(self) -> None:
        self.port = 0
        self._heard = 0
        self._peers: set[tuple[str, int]] = set()
        self._more = asyncio.Condition()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        for host in HOSTS:
            server = await asyncio.start_server(self._met, host, self.port)
            await self._stack.enter_async_context(server)
            self.port = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def heard(self) -> int:
        """How many have connected since this was asked last; none of them is still on its way in."""
        for host in HOSTS:
            await self._ask(host)
        found, self._heard = self._heard - len(HOSTS), 0
        self._peers.clear()
        return found

    async def _ask(self, host: str) -> None:
        """Connect, and wait until that was counted: so was whoever came before."""
        async with asyncio.timeout(BOUND), self._more:
            _, writer = await asyncio.open_connection(host, self.port)
            own = writer.get_extra_info("sockname")[:2]
            await self._more.wait_for(lambda: own in self._peers)
            writer.close()

    async def _met(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._more:
            self._heard += 1
            self._peers.add(writer.get_extra_info("peername")[:2])
            self._more.notify_all()
        writer.close()


class Names(AbstractResolver):
    """Looks names up in a table; the system's answer is taken for those that it does not hold.

    What it says each time may be a function, and None is a failure of no kind that a resolver should have.
    """

    def __init__(self, table: Mapping[str, Sequence[str] | Answer | None]) -> None:
        self._table = table
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        name = host.lower().rstrip(".")
        if name not in self._table:
            return await aiohttp.ThreadedResolver().resolve(host, port, family)
        known = self._table[name]
        found = known() if callable(known) else known
        if found is None:
            raise RuntimeError("the resolver is broken")
        return [_result(host, port, address) for address in found]

    async def close(self) -> None:
        """Nothing is held."""


class Silent(AbstractResolver):
    """Never answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        await asyncio.Event().wait()
        raise AssertionError(port, family)

    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, port: int, address: str) -> Any:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
