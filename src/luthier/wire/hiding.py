"""Blots out secrets in what a server says of a request that held them: it may echo what it was sent."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from luthier.errors import HttpAnswer, WireError
from luthier.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = frozenset({"server", "tool", "phase"})


def hide(error: WireError, secrets: Iterable[Secret]) -> None:
    """Blot them out in all that an error says and holds."""
    every = [part for secret in secrets for part in _parts(secret)]
    for name, value in vars(error).items():
        if name not in _PLAIN:
            setattr(error, name, _hidden(value, every))
    error.args = (error.message,)


def redacted(text: str, secrets: Iterable[Secret | None]) -> str:
    """The text with every spelling in which a secret may be echoed blotted out."""
    for secret in secrets:
        plain = secret.reveal() if secret else ""
        for spelling in _spellings(plain) if plain else ():
            text = text.replace(spelling, "…")
    return text


def _spellings(plain: str) -> tuple[str, ...]:
    encoded = base64.b64encode(plain.encode("utf-8", "surrogatepass")).decode()
    return plain, quote(plain, safe="", errors="replace"), quote_plus(plain, errors="replace"), encoded


def _parts(secret: Secret) -> tuple[Secret, ...]:
    """A value, and what stands in it behind the name of a scheme: `Bearer …`."""
    credentials = secret.reveal().strip().rpartition(" ")[2]
    return secret, Secret(credentials)


def _hidden(value: Any, secrets: list[Secret]) -> Any:
    match value:
        case str():
            return redacted(value, secrets)
        case list():
            return [_hidden(item, secrets) for item in value]
        case dict():
            return {_hidden(name, secrets): _hidden(item, secrets) for name, item in value.items()}
        case HttpAnswer():
            said = {one.name: _hidden(getattr(value, one.name), secrets) for one in dataclasses.fields(value)}
            return HttpAnswer(**said)
        case WireError():
            hide(value, secrets)
    return value
