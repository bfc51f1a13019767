"""How connections are made: what is trusted, and which addresses are not connected to."""

from __future__ import annotations

import ipaddress
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

    from luthier.wire.http.target import TlsFiles


def connector(tls: TlsFiles, *, allow_private: bool, per_origin: int) -> aiohttp.TCPConnector:
    """Raises ValueError where the files of `tls` cannot be used."""
    import aiohttp

    from luthier.wire.http.client import KEEP_ALIVE

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


def is_private(address: str) -> bool:
    """Whether an IP address is not one of the public internet. Names are not: they must be resolved first."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None:
            found = inner
    return not found.is_global or found.is_multicast


def _public_only() -> AbstractResolver:
    import aiohttp

    class PublicOnly(aiohttp.ThreadedResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[aiohttp.abc.ResolveResult]:
            found = await super().resolve(host, port, family)  # type: ignore[arg-type]
            if any(is_private(item["host"]) for item in found):
                raise OSError(None, f"{host} is a private address, and `allow_private` is not set")
            return found

    return PublicOnly()
