"""Which numeric addresses do not lead to the public internet, in every spelling and wrapping.

The tables are our own: what Python's `ipaddress` calls global differs between its versions, and counts
addresses in which a private one is wrapped. An IPv6 address is public only within the part of the space that
is given out, so that whatever comes to stand elsewhere is refused until somebody has thought about it.
"""

from __future__ import annotations

import enum
import ipaddress
import re
import socket

import msgspec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Reach(enum.Enum):
    """Where connections may go: to the public internet, to private networks and this machine, or both."""

    public = "public"
    private = "private"
    any = "any"


class UrlFault(msgspec.Struct, frozen=True):
    """Why a URL is not asked, or an address not connected to: said after its name; and what to do."""

    why: str
    hint: str = ""


PRIVATE = UrlFault(
    "is private or this machine's own", "If it is meant, set `allow_private: true` for this server."
)
NOT_HTTPS = UrlFault("is not https", "Write https://.")
_OPEN = UrlFault("is not https, and plain http is for private addresses only", "Write https://.")
_ODD = UrlFault("stands for something that is no address")

_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\.?", re.IGNORECASE)
_NOWHERE = ipaddress.IPv4Address(0)

_INSIDE_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this machine, on most systems
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by a provider; metadata of some clouds
            "127.0.0.0/8",
            "168.63.129.16/32",  # public by its number, and the host of a machine in Azure
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocols; metadata of some clouds
            "192.0.2.0/24",  # documentation, as are 198.51.100.0 and 203.0.113.0
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_GIVEN_OUT_6 = ipaddress.IPv6Network("2000::/3")
_INSIDE_6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documentation, as is 3fff::
            "3fff::/20",
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LOW_32 = 0xFFFF_FFFF


def address_fault(address: str, reach: Reach) -> UrlFault | None:
    """Why no connection may be made to an address, as a resolver writes it; None where it may.

    What is no address is not connected to.
    """
    if reach is Reach.any:
        return None
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return _ODD
    if leads_inside(found):
        return None if reach is Reach.private else PRIVATE
    return None if reach is Reach.public else _OPEN


def address_of(host: str) -> Address | None:
    """The address that a host is, in every spelling that a resolver takes for one (`127.1`, `0x7f000001`)."""
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return None
    if not _ENDS_IN_A_NUMBER.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return _NOWHERE  # it ends in a number, so it is no name, and it is no address either


def leads_inside(address: Address) -> bool:
    """Whether packets to it end up anywhere but in the public internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return any(address in network for network in _INSIDE_4)
    wrapped = _wrapped(address)
    if wrapped is not None and leads_inside(wrapped):
        return True
    if address.ipv4_mapped is not None or address in _NAT64:
        return False
    return address not in _GIVEN_OUT_6 or any(address in network for network in _INSIDE_6)


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to this one may end up at."""
    if address in _NAT64 or (int(address) >> 32) & _LOW_32 in _ISATAP:
        return ipaddress.IPv4Address(int(address) & _LOW_32)
    return address.ipv4_mapped or address.sixtofour
