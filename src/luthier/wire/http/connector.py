"""How connections are made: what is trusted, and which addresses are not connected to."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from luthier.wire.addresses import address_of, is_private, leads_inside

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

    from luthier.wire.http.target import TlsFiles


KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than the 5 s after which common servers close theirs, so that
a request is not lost on a connection that the server is just closing."""


def connector(tls: TlsFiles, *, allow_private: bool, per_origin: int) -> aiohttp.TCPConnector:
    """Raises ValueError where the files of `tls` cannot be used."""
    import aiohttp

    return aiohttp.TCPConnector(
        limit=0,
        limit_per_host=per_origin,
        keepalive_timeout=KEEP_ALIVE,
        ssl=context(tls),
        resolver=None if allow_private else _public_only(),
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


def refuse_private(host: str) -> None:
    """Raises ValueError for a host that is a private address. Names are looked at when they are resolved."""
    address = address_of(host)
    if address is not None and leads_inside(address):
        raise ValueError(f"{host} is a private address, and `allow_private` is not set")


def _public_only() -> AbstractResolver:
    import aiohttp

    class PublicOnly(aiohttp.ThreadedResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[aiohttp.abc.ResolveResult]:
            found = await super().resolve(host, port, family)  # type: ignore[arg-type]
            if any(is_private(item["host"]) for item in found):
                raise OSError(None, f"{host} is a private address, and `allow_private` is not set")
            return found

    return PublicOnly()
