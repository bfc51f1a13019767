"""Which URLs may be asked on behalf of a server: the rules of the two environments, said once.

    rules = UrlRules.of("http://127.0.0.1:8000/mcp", production=False)  # spelled out in the project file
    fault = rules.fault(url)  # before anything is sent
    HttpTarget(server=…, url=url, reach=rules.reach(url))  # and at each connection, by the resolved address

What a name stands for is known only when it is looked up, so the second half is done by the HTTP client: it
connects to no address that `address_fault` refuses, and to none that it did not see.
"""

from __future__ import annotations

from typing import Self

import msgspec

from luthier.web.addresses import NOT_HTTPS, PRIVATE, Reach, UrlFault, address_fault, address_of
from luthier.web.urls import Origin, form_fault, origin

_INSIDE = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "home.arpa")
"""Names, and all names below them, that stand for nothing in the public internet."""


class UrlRules(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests on behalf of one server may go; without more, to public addresses by https.

    `named` are the origins that the project file itself spells out, which a development machine may ask
    wherever they lead. Redirects, metadata and data are never among them.
    """

    named: frozenset[Origin] = frozenset()
    allow_private: bool = False
    production: bool = True

    @classmethod
    def of(cls, *named: str, production: bool, allow_private: bool = False) -> Self:
        """The rules for a server whose entry spells out these URLs."""
        origins = () if production else map(origin, (url for url in named if form_fault(url) is None))
        return cls(named=frozenset(origins), allow_private=allow_private, production=production)

    def reach(self, url: str) -> Reach:
        """Where a connection for this URL may go. It must be one by its form."""
        own = origin(url)
        if own in self.named:
            return Reach.any
        if not self.allow_private:
            return Reach.public
        return Reach.private if self.production and own[0] == "http" else Reach.any

    def fault(self, url: str) -> UrlFault | None:
        """Why this URL may not be asked, as far as it shows without looking its name up."""
        return form_fault(url) or reach_fault(url, self.reach(url))


def url_fault(url: str, reach: Reach) -> UrlFault | None:
    """Why this URL may not be asked with that reach, as far as it shows without looking its name up."""
    return form_fault(url) or reach_fault(url, reach)


def reach_fault(url: str, reach: Reach) -> UrlFault | None:
    """The second half of `url_fault`, for what is a URL by its form."""
    scheme, host, _ = origin(url)
    address = address_of(host)
    if address is not None:
        fault = address_fault(str(address), reach)
    else:
        fault = PRIVATE if reach is Reach.public and _is_inside(host) else None
    if fault is None and reach is Reach.public and scheme != "https":
        return NOT_HTTPS
    return fault


def _is_inside(host: str) -> bool:
    return host in _INSIDE or host.endswith(tuple(f".{name}" for name in _INSIDE))
