"""Which proxy an address is reached by, as the usual variables of the environment say."""

from __future__ import annotations

import contextlib
import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from luthier.web import address_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's own address; None to go straight, as for whatever runs on this machine."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if _is_local(host) or _excepted(host, parts.port, _read(environ, "no_proxy")):
        return None
    proxy = _read(environ, f"{parts.scheme}_proxy") or _read(environ, "all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _read(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_local(host: str) -> bool:
    address = address_of(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def _excepted(host: str, port: int | None, exceptions: str) -> bool:
    return any(_matches(host, port, item.strip().lower()) for item in exceptions.split(",") if item.strip())


def _matches(host: str, port: int | None, item: str) -> bool:
    """Whether an item of NO_PROXY means this host. What cannot be understood means nobody."""
    if item == "*":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(item.strip("[]"), strict=False)
    name, colon, number = item.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        item = name.strip("[]")
    item = item.removeprefix("*").strip(".")
    return bool(item) and (host == item or host.endswith(f".{item}"))
