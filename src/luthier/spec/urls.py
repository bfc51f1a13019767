"""The URLs that a server's entry names, and the rules for what may be asked on its behalf.

A development machine may ask whatever its own project file spells out. A URL that a reference decides on, and
every URL in production, is for public addresses by https, unless the entry says that it may be private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.secrets import find
from luthier.web import UrlRules, form_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec.project import ServerEntry
    from luthier.web import UrlFault

AUTH_URLS = ("token_url", "issuer", "idp_token_url")


def urls_of(entry: ServerEntry) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is asked on its behalf, as it is written, and the way to it."""
    if entry.url is not None:
        yield ("url",), entry.url
    for name in AUTH_URLS:
        if text := getattr(entry.auth, name):
            yield ("auth", name), text


def rules_of(entry: ServerEntry, environment: str) -> UrlRules:
    """The rules for that server."""
    spelled_out = (text for _, text in urls_of(entry) if not find(text))
    production = environment != "development"
    return UrlRules.of(*spelled_out, allow_private=entry.allow_private, production=production)


def told(fault: UrlFault, url: str, *, production: bool) -> str:
    """The fault with what makes it one, to be said after the name of the URL."""
    if form_fault(url) is not None:
        return fault.why
    where = "in production" if production else "where a reference decides on it"
    return f"{fault.why}, which is not allowed {where}"
