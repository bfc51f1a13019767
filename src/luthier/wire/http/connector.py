"""How connections are made: what is trusted, and which addresses are connected to.

A name is looked up once for a connection, all its addresses are judged, and one of those is connected to; the
name itself stays in the `Host` header and in what the certificate must say. One address that is refused
refuses the name, since whoever mixes them decides by chance, or by design, which one is used. What fails in
this, in whatever way, is no connection.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

from luthier.web import Reach, address_fault

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.connector import AddrInfoType, SocketFactoryType

    from luthier.web import UrlFault
    from luthier.wire.http.target import TlsFiles


KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than the 5 s after which common servers close theirs, so that
a request is not lost on a connection that the server is just closing."""


class RefusedAddressError(OSError):
    """No connection is made, since that address may not be reached."""

    def __init__(self, host: str, fault: UrlFault) -> None:
        super().__init__(None, f"{host} {fault.why}")
        self.fault = fault


def connector(
    tls: TlsFiles, reach: Reach, *, per_origin: int, resolver: AbstractResolver | None = None
) -> aiohttp.TCPConnector:
    """Raises ValueError where the files of `tls` cannot be used. `resolver` None: the system's."""
    import aiohttp

    inner = resolver or aiohttp.ThreadedResolver()
    return aiohttp.TCPConnector(
        limit=0,
        limit_per_host=per_origin,
        keepalive_timeout=KEEP_ALIVE,
        ssl=context(tls),
        resolver=_guarded(inner, reach),
        socket_factory=sockets(reach),
    )


def context(tls: TlsFiles) -> ssl.SSLContext:
    """The system's trust, and what the files add to it. Raises ValueError."""
    made = ssl.create_default_context()
    made.set_alpn_protocols(["http/1.1"])
    try:
        if tls.ca is not None:
            made.load_verify_locations(cafile=tls.ca)
        if tls.cert is not None:
            made.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"the files under `tls` cannot be used: {error}") from None
    if not tls.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


def judge(host: str, found: list[ResolveResult], reach: Reach) -> list[ResolveResult]:
    """The addresses of a name, if all of them may be connected to. Raises OSError."""
    if not found:
        raise OSError(None, "it stands for no address")
    for item in found:
        fault = address_fault(item["host"], reach)
        if fault is not None:
            raise RefusedAddressError(host, fault)
    return found


def _guarded(inner: AbstractResolver, reach: Reach) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver

    class Guarded(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            try:
                return judge(host, await inner.resolve(host, port, family), reach)
            except RefusedAddressError:
                raise
            except Exception as error:
                raise OSError(None, _why(error)) from error

        async def close(self) -> None:
            """It is closed by whoever made the inner one."""

    return Guarded()


def _why(error: Exception) -> str:
    """What may be told of a failed lookup. That of a resolver that is broken stays with the cause."""
    name = type(error).__name__
    return error.strerror or str(error) or name if isinstance(error, OSError) else name


def sockets(reach: Reach) -> SocketFactoryType:
    """Opens sockets for addresses that may be connected to: none gets past, whoever found it."""

    def made(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, where = address
        fault = address_fault(str(where[0]), reach)
        if fault is not None:
            raise RefusedAddressError(str(where[0]), fault)
        return socket.socket(family, kind, protocol)

    return made
