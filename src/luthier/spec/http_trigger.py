"""Reads triggers of types `http` and `webhook`: an ensemble under an address, and who may ask there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.spec.serve import read_tokens
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from luthier.spec.reader import Reader

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RESERVED = frozenset({"api", "callback", "health", "mcp", "openapi.json", ".well-known"})
"""What an address cannot begin with: others live there."""

TOLERANCE = 300.0
"""Seconds that a signature is old at most."""

PATH = re.compile(r"/|(/([A-Za-z0-9._~-]+|:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}))+", re.ASCII)
_PARAMETER = re.compile(r":([A-Za-z_]\w*)")
KINDS = ("bearer", "basic", "signature")
PRESETS = ("default", "github", "slack")
LATER = ("cors", "middleware", "responses", "templateEngine", "mode")

AuthKind = Literal["bearer", "basic", "signature"]
Preset = Literal["default", "github", "slack"]


class TriggerAuth(msgspec.Struct, frozen=True, kw_only=True):
    """What opens this address and nothing else: references, and hashes of bearer tokens.

    `preset`: which headers a signature stands in, and over what it is made.
    """

    type: AuthKind
    secrets: tuple[str, ...]
    preset: Preset = "default"
    tolerance: float = TOLERANCE

    def __repr__(self) -> str:
        return f"TriggerAuth({self.type!r})"


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many requests within so many seconds, from each address or caller."""

    requests: int
    window: float
    key: Literal["ip", "user"] = "ip"


class HttpTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """The ensemble under each of `paths`, whose parameters are written `{name}`.

    Without `auth` and not `public`, the project's clients may ask, or those of them that `clients` names.
    `in_background`: the answer does not wait for the run. `run_timeout`: seconds for all of it.
    """

    type: Literal["http", "webhook"]
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    auth: TriggerAuth | None = None
    public: bool = False
    clients: tuple[str, ...] | None = None
    in_background: bool = False
    run_timeout: float | None = None
    rate: Rate | None = None
    cache_control: str = ""


def read_http_trigger(reader: Reader, ensemble: str, type_: str) -> HttpTrigger:
    """All of one; its type has been read."""
    hook = type_ == "webhook"
    trigger = HttpTrigger(
        type="webhook" if hook else "http",
        paths=_paths(reader, ensemble),
        methods=_methods(reader, ("POST",) if hook else ("GET",)),
        auth=_auth(reader),
        public=reader.flag("public"),
        clients=reader.who("clients"),
        in_background=reader.flag("async"),
        run_timeout=reader.seconds("timeout"),
        rate=_rate(reader),
        cache_control=reader.text("cache") or "",
    )
    if trigger.public and (trigger.auth or trigger.clients is not None):
        message = "`public` and `auth` or `clients` contradict each other: write one of them"
        reader.sink.add(message, reader.places["public"], key=True)
    if any(not mark.isprintable() for mark in trigger.cache_control):
        reader.sink.add("`cache` is written into a header: it has no line breaks", reader.places["cache"])
    reader.refuse(LATER, lambda key: f"this version does not use `{key}` of triggers yet", warning=True)
    reader.done({"method": "`methods` is a list", "cors": "`serve.origins` lists who may call"})
    return trigger


def _paths(reader: Reader, ensemble: str) -> tuple[str, ...]:
    one, more = reader.text("path"), reader.texts("paths")
    if one is not None and more is not None:
        reader.sink.add("write either `path` or `paths`", reader.places["paths"], key=True)
    written = (one,) if one is not None else more if more is not None else (f"/{ensemble}",)
    place = reader.places.get("path") or reader.places.get("paths") or reader.path
    if not written:
        reader.sink.add("`paths` is empty", place)
    for path in written:
        if not PATH.fullmatch(path):
            message = f"{quoted(path)} is no path: it is of segments such as /orders/:id, of plain characters"
            reader.sink.add(message, place, suggestion="write `path: /…`")
        elif path.split("/")[1] in RESERVED:
            reader.sink.add(f"{quoted(path)} cannot be had: others live below it", place)
    return tuple(_PARAMETER.sub(r"{\1}", path) for path in written)


def _methods(reader: Reader, usual: tuple[str, ...]) -> tuple[str, ...]:
    named = reader.texts("methods")
    if named is None:
        return usual
    if not named:
        reader.sink.add("`methods` is empty", reader.places["methods"])
    for index, name in enumerate(named):
        if name.upper() not in METHODS:
            path = (*reader.places["methods"], index)
            hint = meant(name.upper(), METHODS) or f"known here: {listed(METHODS)}"
            reader.sink.add(f"{quoted(name)} is no method of triggers", path, suggestion=hint)
    return tuple(dict.fromkeys(name.upper() for name in named))


def _auth(reader: Reader) -> TriggerAuth | None:
    auth = reader.inner("auth")
    if auth is None:
        return None
    kind = auth.choice(KINDS, "type") or "bearer"
    found = auth.take("secret", "token", "tokens", required=True)
    preset = auth.choice(PRESETS, "preset")
    tolerance = auth.seconds("tolerance", per=1)
    for name in ("preset", "tolerance"):
        if kind != "signature" and name in auth.places:
            auth.sink.add(f"`{name}` is of signatures", auth.places[name], key=True)
    auth.done()
    secrets = () if found is None else read_tokens(auth.sink, found)
    for secret in secrets:
        if kind != "bearer" and secret.startswith("sha256:"):
            message = f"with {quoted(kind)} the secret itself is needed: a reference, not a hash"
            auth.sink.add(message, auth.places["secret"])
    return TriggerAuth(
        type=kind,  # type: ignore[arg-type]  # one of KINDS
        secrets=secrets,
        preset=preset or "default",  # type: ignore[arg-type]  # one of PRESETS
        tolerance=TOLERANCE if tolerance is None else tolerance,
    )


def _rate(reader: Reader) -> Rate | None:
    rate = reader.inner("rate_limit")
    if rate is None:
        return None
    requests, window = rate.whole("requests", low=1), rate.seconds("window", per=1)
    key = rate.choice(("ip", "user"), "key") or "ip"
    rate.done()
    if requests is None or window is None:
        rate.sink.add("a limit has `requests` and `window`, which is seconds", rate.path)
        return None
    return Rate(requests=requests, window=window, key="user" if key == "user" else "ip")
