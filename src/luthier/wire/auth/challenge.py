"""Reads what a server says about the credentials that it wants: the `WWW-Authenticate` header."""

from __future__ import annotations

import re

import msgspec

_BEARER = re.compile(r"(?:^|[\s,])bearer(?:\s+|\s*$|\s*,)", re.IGNORECASE)
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_LONGEST = 8192


class Challenge(msgspec.Struct, frozen=True):
    """The parameters of its Bearer challenge; empty where it gives none."""

    error: str = ""
    scope: str = ""
    resource_metadata: str = ""

    @property
    def wants_scope(self) -> bool:
        return self.error == "insufficient_scope"


def read_challenge(header: str) -> Challenge:
    """The Bearer challenge of a header that may hold challenges of other schemes before and behind it."""
    header = header[:_LONGEST]
    start = _BEARER.search(header)
    if start is None:
        return Challenge()
    found: dict[str, str] = {}
    position = start.end()
    while match := _PARAMETER.match(header, position):
        quoted, plain = match[2], match[3]
        found.setdefault(match[1].lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
    return Challenge(
        error=found.get("error", ""),
        scope=found.get("scope", ""),
        resource_metadata=found.get("resource_metadata", ""),
    )


def union(*scopes: str | None) -> str | None:
    """All scopes of all texts, each once, in their order; None for none."""
    words = [word for scope in scopes if scope for word in scope.split()]
    return " ".join(dict.fromkeys(words)) or None
