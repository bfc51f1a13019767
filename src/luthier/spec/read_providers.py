"""Reads `providers:` of the project file."""

from __future__ import annotations

from typing import Any

from luthier.models import Price
from luthier.models.providers import KINDS
from luthier.secrets import find
from luthier.spec.origin import Origin
from luthier.spec.provider import USUAL, Provider
from luthier.spec.reader import Reader
from luthier.spec.server_parts import read_trust
from luthier.spec.words import as_suggestion, quoted
from luthier.taint import UNTRUSTED
from luthier.uri import SERVER_ID
from luthier.web import form_fault

_REFERENCE = "write ${env.NAME} and set the variable, or ${secret:NAME}"
_HINTS = {
    "apikey": "write api_key",
    "key": "write api_key",
    "url": "write base_url",
    "api_endpoint": "write base_url",
    "apiEndpoint": "write base_url",
    "temperature": "it stands in the `config` of a step",
    "models": "`model` is the one that steps get that name none; `prices` holds what each costs",
}


def read_providers(reader: Reader, environment: str) -> dict[str, Provider]:
    """`providers:`, a mapping by id."""
    outer = reader.inner("providers")
    read = {}
    for id_, value in outer.data.items() if outer else ():
        path = (*outer.path, id_) if outer else ()
        if not SERVER_ID.fullmatch(id_):
            reader.sink.add(f"{quoted(id_)} cannot be a provider's id", path, key=True)
            continue
        inner = Reader.of(reader.sink, path, value if value is not None else {}, quoted(id_))
        if inner is not None:
            read[id_] = _read(inner, id_, environment)
    return read


def _read(reader: Reader, id_: str, environment: str) -> Provider:
    kind: Any = reader.choice(KINDS, "type", "kind") or (id_ if id_ in KINDS else None)
    if kind is None and "type" not in reader.places:
        message = f"the provider {quoted(id_)} needs a `type`"
        reader.sink.add(message, reader.path, suggestion="openai for all that speak like it, or anthropic")
    base_url = reader.text("base_url")
    api_key = reader.text("api_key")
    if api_key is not None and not find(api_key):
        message = "`api_key` is a reference, never the key itself"
        reader.sink.add(message, reader.places["api_key"], suggestion=_REFERENCE)
    if api_key is None and base_url is None and kind is not None:
        api_key = USUAL[kind].api_key
    provider = Provider(
        id=id_,
        kind=kind,
        base_url=base_url,
        api_key=api_key,
        model=reader.text("model") or "",
        timeout=reader.seconds("timeout_ms", "timeout"),
        prices=_read_prices(reader),
        trust=read_trust(reader) or UNTRUSTED,
        allow_private=reader.flag("allow_private"),
        origin=Origin(reader.sink.document, reader.path, reader.places),
    )
    if base_url is not None and not find(base_url):
        fault = form_fault(base_url) or provider.rules(environment).fault(base_url)
        if fault is not None:
            at = reader.places["base_url"]
            reader.sink.add(f"the address {fault.why}", at, suggestion=as_suggestion(fault.hint))
    reader.done(_HINTS)
    return provider


def _read_prices(reader: Reader) -> dict[str, Price]:
    outer = reader.inner("prices")
    prices = {}
    for model, value in outer.data.items() if outer else ():
        inner = Reader.of(reader.sink, (*outer.path, model) if outer else (), value, quoted(model))
        if inner is None:
            continue
        given = {name: _dollars(inner, name) for name in ("input", "output", "cache_read", "cache_write")}
        inner.done({"unit": "dollars for a million tokens"})
        for name in ("input", "output"):
            if given[name] is None and name not in inner.places:
                inner.sink.add(f"{quoted(name)} is missing", inner.path)
        prices[model] = Price(
            input=given["input"] or 0.0,
            output=given["output"] or 0.0,
            cache_read=given["cache_read"],
            cache_write=given["cache_write"],
        )
    return prices


def _dollars(reader: Reader, name: str) -> float | None:
    found = reader.take(name)
    if found is None:
        return None
    if not isinstance(found.value, int | float) or isinstance(found.value, bool):
        reader.sink.wrong("a number of dollars for a million tokens", *found)
        return None
    if found.value < 0:
        reader.sink.add(f"{quoted(name)} must be 0 or more, not {found.value}", found.path)
    return float(found.value)
