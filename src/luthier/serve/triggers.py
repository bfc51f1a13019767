"""Ensembles under addresses of their own: each with its lock, and its input made of the request."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import Clock
from luthier.errors import Fault, SpecError
from luthier.serve.bearing import Bearing
from luthier.serve.caller import Caller
from luthier.serve.callers import Callers, secret_of, trigger_place
from luthier.serve.locks import Basic, Open, Signature, Tokens
from luthier.serve.offers import OWN
from luthier.spec import HttpTrigger, read_input_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.routing import Route

    from luthier.serve.door import Scope
    from luthier.serve.locks import Lock
    from luthier.spec import Ensemble
    from luthier.spec.http_trigger import Rate

MOST_CALLERS = 10_000
"""Of one limit that are kept apart; of more, those who came last."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as its ensemble sees it. `body` UNSET: it has none."""

    method: str
    path: str
    url: str
    params: dict[str, str]
    query: dict[str, str | list[str]]
    headers: dict[str, str]
    body: Any = msgspec.UNSET


class Trigger:
    """One address of an ensemble."""

    def __init__(self, ensemble: Ensemble, spec: HttpTrigger, lock: Lock, clock: Clock) -> None:
        self.ensemble = ensemble
        self.spec = spec
        self.lock = lock
        self.place = trigger_place(ensemble, spec.paths[0])
        self.limit = None if spec.rate is None else Limit(spec.rate, clock)
        self._routes = [_route(path, spec.methods) for path in spec.paths]

    def fits(self, scope: Scope) -> bool:
        """Whether the request is for it, by path and method."""
        from starlette.routing import Match

        return any(route.matches(scope)[0] is Match.FULL for route in self._routes)


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """What locks are made with."""

    callers: Callers
    bearing: Bearing | None
    environ: Mapping[str, str]
    clock: Clock


def triggers_of(ensembles: Iterable[Ensemble], keys: Keys) -> tuple[Trigger, ...]:
    """All of them, each behind its lock. Raises SpecError where two have one address, or for a bad secret."""
    found = [
        Trigger(ensemble, spec, _lock(ensemble, spec, keys), keys.clock)
        for ensemble in ensembles
        for spec in ensemble.triggers
        if isinstance(spec, HttpTrigger)
    ]
    counted = Counter(
        (method, _shape(path)) for one in found for path in one.spec.paths for method in one.spec.methods
    )
    faults = [
        Fault(f"two triggers are at {method} {path}", suggestion="write `path: …`")
        for (method, path), count in counted.items()
        if count > 1
    ]
    if faults:
        raise SpecError(faults)
    return tuple(found)


def inputs_of(ensemble: Ensemble, asked: Asked) -> dict[str, Any]:
    """The input of a run: what query, body and path name, and the request itself beside it.

    A parameter is text: it is read as `-i` of the command line is. The members of the request give way to
    inputs that the ensemble declares by the same name.
    """
    named: dict[str, Any] = {}
    for name, value in asked.query.items():
        named[name] = value if isinstance(value, list) else read_input_text(ensemble, name, value)
    if isinstance(asked.body, dict):
        named.update(asked.body)
    for name, text in asked.params.items():
        named[name] = read_input_text(ensemble, name, text)
    about = msgspec.to_builtins(asked)
    return {**named, **{name: value for name, value in about.items() if name not in ensemble.inputs}}


class Limit:
    """So many requests within a time, from each caller."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._seen: dict[str, deque[float]] = {}

    @property
    def known(self) -> int:
        """How many callers it keeps apart."""
        return len(self._seen)

    def wait(self, caller: Caller, address: str) -> float:
        """Seconds until the caller may come again; 0 where it may now, and then this counts."""
        now, key = self._clock.monotonic(), address if self._rate.key == "ip" else caller.id
        if key not in self._seen and len(self._seen) >= MOST_CALLERS:
            self._forget(now)
        seen = self._seen.setdefault(key, deque())
        while seen and seen[0] <= now - self._rate.window:
            seen.popleft()
        if len(seen) >= self._rate.requests:
            return seen[0] + self._rate.window - now
        seen.append(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Those who have not come for a while; all, where there are none: nobody is kept out by a crowd."""
        old = [key for key, seen in self._seen.items() if not seen or seen[-1] <= now - self._rate.window]
        for key in old or list(self._seen):
            del self._seen[key]


def _lock(ensemble: Ensemble, spec: HttpTrigger, keys: Keys) -> Lock:
    own, place = Caller(id=OWN + ensemble.name), trigger_place(ensemble, spec.paths[0])
    auth = spec.auth
    if auth is None:
        return Open(own) if spec.public else Tokens(keys.callers, keys.bearing, clients=spec.clients)
    if auth.type == "bearer":
        held = Callers.holding([(own, auth.secrets, place)], keys.environ)
        return Tokens(keys.callers, keys.bearing, own=held, clients=spec.clients or ())
    secrets = tuple(secret_of(secret, keys.environ, place) for secret in auth.secrets)
    if auth.type == "basic":
        return Basic(secrets, own)
    scope = f"{ensemble.name} {spec.paths[0]}"
    return Signature(secrets, own, keys.clock, preset=auth.preset, tolerance=auth.tolerance, scope=scope)


def _route(path: str, methods: tuple[str, ...]) -> Route:
    from starlette.routing import Route

    return Route(path, _nowhere, methods=list(methods))


async def _nowhere(_: object) -> None:
    """Never asked: these routes only tell whose a request is."""


def _shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
