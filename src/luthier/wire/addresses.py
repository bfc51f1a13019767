"""Which numeric addresses do not lead to the public internet, in every spelling and wrapping."""

from __future__ import annotations

import ipaddress
import re
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}\.?", re.IGNORECASE)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def is_private(address: str) -> bool:
    """Whether an address is not one of the public internet. Raises ValueError for what is no address."""
    return leads_inside(ipaddress.ip_address(address.partition("%")[0]))


def address_of(host: str) -> Address | None:
    """The address that a host is, in every spelling that a resolver takes for one (`127.1`, `0x7f000001`)."""
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return None
    if not _NUMBERS.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return ipaddress.IPv4Address(0)  # numbers, but no address: it leads nowhere


def leads_inside(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return leads_inside(inner)
        if address.is_site_local:
            return True
    return not address.is_global or address.is_multicast or address.is_unspecified


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to this one end up at."""
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
