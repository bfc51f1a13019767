"""How web addresses are read, compared and shown, and which texts are none."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from luthier.web.addresses import UrlFault, address_of

Origin = tuple[str, str, int]
"""Scheme, host and port."""

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
_PLACE = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]*)?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_LONGEST_NAME = 253


def origin(url: str) -> Origin:
    """Scheme, host and port. Raises ValueError for what is no web address."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"not a web address: {url}")
    port = parts.port
    return parts.scheme, parts.hostname.rstrip("."), _PORTS[parts.scheme] if port is None else port


def same_origin(one: str, other: str) -> bool:
    try:
        return origin(one) == origin(other)
    except ValueError:
        return False


def shown(url: str) -> str:
    """An address for messages: without user, password, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def form_fault(url: str) -> UrlFault | None:
    """What makes a text no URL that may be asked, wherever it leads. Two readers must not differ on it."""
    if not url.isascii():
        hint = "Write a host in its form that begins with xn--, and the rest percent-encoded."
        return UrlFault("holds characters that are not ASCII", hint)
    if not _PLAIN.fullmatch(url):
        return UrlFault("holds a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return UrlFault("cannot be read")
    if parts.scheme not in _PORTS or not host or port == 0:
        return UrlFault("does not begin with https:// or http:// and name a host")
    if "@" in parts.netloc:
        hint = "Put it where it is not shown: `auth: {type: bearer, token: …}`, or a header."
        return UrlFault("holds a user name or a password", hint)
    if "#" in url:
        return UrlFault("holds a fragment (`#`), which no server gets to see", "Leave it out.")
    if not _PLACE.fullmatch(parts.netloc) or (address_of(host) is None and not _is_name(host)):
        return UrlFault("names a host that is neither a name nor an address")
    return None


def _is_name(host: str) -> bool:
    """Whether it is a name that can be looked up."""
    bare = host.removesuffix(".")
    return len(bare) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, bare.split(".")))
