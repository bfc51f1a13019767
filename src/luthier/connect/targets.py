"""From an entry to an address that may be reached: references expanded, and the rules for addresses kept.

The rules for URLs are those of `spec.urls`; what a name stands for is looked at when it is connected to.
Whatever is refused here fails this server alone, before anything is sent, with the place in the file that
says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import msgspec

from luthier.connect.references import INSTEAD, expanded, written_out
from luthier.errors import ConnectError, UnresolvedReferenceError
from luthier.spec.places import is_file, located
from luthier.spec.urls import AUTH_URLS, rules_of, told
from luthier.text import escape, one_line
from luthier.tools.headers import name_fault, value_fault
from luthier.wire.http import HttpTarget, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry
    from luthier.spec.project import Auth
    from luthier.web import Reach

_AUTH_TEXTS = (
    "token", "client_id", "client_secret", "token_url", "scope", "issuer",
    "id_token", "idp_token_url", "idp_client_id",
)  # fmt: skip


def target_of(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> HttpTarget:
    """How the server of an entry is reached. Raises ConnectError that no second try heals. Sends nothing."""
    try:
        return _target(entry, registry, environ)
    except UnresolvedReferenceError as error:
        raise _unresolved(entry, error) from error


def auth_of(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> Auth:
    """What the entry says of credentials, references expanded. Raises ConnectError likewise."""
    try:
        said = {
            name: expanded(entry, environ, text, "auth", name)
            for name in _AUTH_TEXTS
            if isinstance(text := getattr(entry.auth, name), str)
        }
    except UnresolvedReferenceError as error:
        raise _unresolved(entry, error) from error
    for name in AUTH_URLS:
        if said.get(name):
            _check_url(entry, registry, said[name], "auth", name)
    return msgspec.structs.replace(entry.auth, **said)


def secret_of(entry: ServerEntry, environ: Mapping[str, str]) -> str | None:
    """The secret that signs requests, if there is one. Raises ConnectError likewise."""
    try:
        return None if entry.secret is None else expanded(entry, environ, entry.secret, "secret")
    except UnresolvedReferenceError as error:
        raise _unresolved(entry, error) from error


def _target(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> HttpTarget:
    if fault := written_out(entry, registry):
        refuse(entry, fault[1], *fault[0], hint=INSTEAD)
    url = expanded(entry, environ, entry.url or "", "url")
    return HttpTarget(
        server=entry.id,
        url=url,
        headers=_headers(entry, environ),
        tls=_tls(entry, registry, environ),
        proxy=None if entry.proxy is None else _proxy(entry, environ, entry.proxy),
        max_message_bytes=entry.max_message_bytes,
        timeout=entry.timeout,
        reach=_check_url(entry, registry, url, "url"),
        place=entry.origin.place("url"),
    )


def _check_url(entry: ServerEntry, registry: ServerRegistry, url: str, *keys: str) -> Reach:
    """Where a connection for it may go. Refuses what may not be asked at all."""
    rules = rules_of(entry, registry.environment)
    fault = rules.fault(url)
    if fault is not None:
        why = told(fault, url, production=rules.production)
        refuse(entry, f"its {keys[-1]} {why}", *keys, hint=fault.hint)
    return rules.reach(url)


def _headers(entry: ServerEntry, environ: Mapping[str, str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, text in entry.headers.items():
        fault = name_fault(name)
        value = "" if fault else expanded(entry, environ, text, "headers", name).strip()
        fault = fault or value_fault(name, value)
        if fault is not None:
            refuse(entry, fault, "headers", name)
        headers[name] = value
    return headers


def _tls(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> TlsFiles:
    tls = entry.tls
    if tls is None:
        return TlsFiles()
    if registry.environment == "production" and not tls.verify:
        refuse(entry, "in production certificates are verified", "tls", "verify")

    def file(name: str, text: str | None) -> str | None:
        if text is None:
            return None
        path = located(registry.root, expanded(entry, environ, text, "tls", name))
        if not is_file(path):
            refuse(entry, f"the file {one_line(text)!r} is not there", "tls", name)
        return str(path)

    return TlsFiles(
        ca=file("ca", tls.ca), cert=file("cert", tls.cert), key=file("key", tls.key), verify=tls.verify
    )


def _proxy(entry: ServerEntry, environ: Mapping[str, str], text: str) -> str:
    url = expanded(entry, environ, text, "proxy")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        refuse(entry, "its proxy does not begin with http:// or https:// and name a host", "proxy")
    return url


def _unresolved(entry: ServerEntry, error: UnresolvedReferenceError) -> ConnectError:
    return ConnectError(
        f"Server {entry.id!r} cannot be reached: {error.message}",
        server=entry.id,
        phase="connect",
        retryable=False,
        hint=error.hint,
    )


def refuse(entry: ServerEntry, why: str, *keys: str | int, hint: str = "") -> NoReturn:
    """Raise the ConnectError that says why this server cannot be reached, and where that is written."""
    place = escape(entry.origin.place(*keys))
    raise ConnectError(
        f"Server {entry.id!r} cannot be reached: {f'{place}: ' if place else ''}{why}.",
        server=entry.id,
        phase="connect",
        retryable=False,
        hint=hint,
    )
