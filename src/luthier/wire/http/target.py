"""Where a server is reached by HTTP, and where what it says of itself may lead: to its own origin only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

import msgspec

from luthier.web import Reach, same_origin, shown
from luthier.wire.http.authorizer import Authorizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.secrets import Secret

MAX_MESSAGE = 10 * 1024 * 1024


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS: `ca` is trusted besides the system's; `verify` False accepts any certificate."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One server by URL, its references expanded.

    `proxy` None: as the environment says. `timeout` is seconds to connect. `reach` says which addresses are
    connected to, whatever its name stands for. `place` is where the URL is written.
    `personal`: the headers hold a caller's own credentials.
    """

    server: str
    url: str
    headers: dict[str, str] = {}
    tls: TlsFiles = TlsFiles()
    proxy: str | None = None
    authorizer: Authorizer | None = None
    max_message_bytes: int = MAX_MESSAGE
    timeout: float = 30.0
    reach: Reach = Reach.public
    place: str = ""
    personal: bool = False

    def __repr__(self) -> str:
        return f"HttpTarget({self.server!r}, {shown(self.url)!r})"  # headers and proxy hold secrets

    def given(self, headers: Mapping[str, Secret] | None) -> HttpTarget:
        """The same server as a call asks it that brings headers of its own, which win over the entry's.

        With an `Authorization` among them, the entry's own credentials are not used, whatever becomes of it.
        """
        if headers is None:
            return self
        personal = any(name.lower() == "authorization" for name in headers)
        authorizer = self.authorizer
        if personal and authorizer is not None:
            authorizer = authorizer.signing()
        return msgspec.structs.replace(
            self,
            headers=laid_over(self.headers, revealed(headers)),
            authorizer=authorizer,
            personal=personal,
        )


def revealed(headers: Mapping[str, Secret]) -> dict[str, str]:
    """As they go out."""
    return {name: value.reveal().strip() for name, value in headers.items()}


def laid_over(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Both, the others winning, whatever case their names are written in."""
    names = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(others)


def below(url: str, *segments: str) -> str:
    """The address of something below this one: `{url}/tools/{name}`. A query stays at the end."""
    parts = urlsplit(url)
    path = "/".join((parts.path.removesuffix("/"), *(quote(segment, safe="") for segment in segments)))
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def endpoints(stream: str, named: str) -> tuple[str, ...]:
    """Where an `endpoint` event may point, the likeliest first; empty where it names another origin.

    It is a link on the stream's own address; behind a proxy that hides a prefix from the server, it means
    something below that prefix.
    """
    try:
        target = urldefrag(urljoin(stream, named.strip())).url
        if not same_origin(stream, target):
            return ()
        parts = urlsplit(named.strip())
    except ValueError:
        return ()
    prefix = urlsplit(stream).path.rpartition("/")[0]
    kept = [target]
    if prefix and parts.path.startswith("/") and not parts.path.startswith(f"{prefix}/"):
        whole = urlsplit(target)
        kept.append(urlunsplit((whole.scheme, whole.netloc, prefix + whole.path, whole.query, "")))
    return tuple(kept)


def redirected(method: str, status: int, url: str, location: str) -> str | None:
    """Where to go on with the same method and body, or None where that would be wrong."""
    if status not in (307, 308) and not (method == "GET" and status in (301, 302, 303)):
        return None
    try:
        target = urldefrag(urljoin(url, location)).url
    except ValueError:
        return None
    return target if same_origin(url, target) else None
