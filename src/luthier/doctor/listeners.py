"""What `luthier serve` would offer, and whether every caller of it is known. No token is read."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from luthier.doctor.finding import Case, Finding
from luthier.errors import SpecError
from luthier.runtime import Library
from luthier.secrets import find
from luthier.spec import HttpTrigger, McpTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import Ensemble, Trigger


def listeners(case: Case) -> Iterator[Finding]:
    serve = case.project.serve
    offered = [ensemble for ensemble in _ensembles(case) if ensemble.triggers]
    if not offered and not serve.tools and not serve.clients and serve.oauth is None:
        yield Finding(name="serve", status="off", said="nothing is offered to clients")
        return
    said = f"{len(offered)} ensembles and {len(serve.tools)} addresses of tools are offered"
    if importlib.util.find_spec("mcp") is None:
        fix = "Run: pip install 'luthier[serve]'"
        yield Finding(name="serve", status="broken", said=f"{said}, and the package mcp is missing", fix=fix)
    else:
        yield Finding(name="serve", status="ok", said=said)
    yield _tokens(case, offered)
    public = [ensemble.name for ensemble in offered if any(map(_is_public, ensemble.triggers))]
    if public:
        said = f"whoever reaches the address may start {', '.join(public)}"
        fix = "If that is not meant, write `auth` in place of `public: true`."
        yield Finding(name="public", status="warning", said=said, fix=fix)


def _tokens(case: Case, offered: list[Ensemble]) -> Finding:
    serve = case.project.serve
    clients = [client.tokens for client in serve.clients.values() if client.tokens]
    own = [held for ensemble in offered for trigger in ensemble.triggers if (held := _held(trigger))]
    if not clients and not own and serve.oauth is None:
        fix = "Make one with `luthier serve --new-token`; over pipes none is needed."
        said = "nobody has one: --http refuses to start"
        return Finding(name="tokens", status="warning", said=said, fix=fix)
    tokens = [token for held in (*clients, *own) for token in held]
    missing = sorted(
        {
            reference.name
            for token in tokens
            for reference in find(token)
            if reference.kind == "env" and not reference.value(case.environ)
        }
    )
    if missing:
        said, fix = f"not set: {', '.join(missing)}", "Set them, or name a file under `env_file`."
        return Finding(name="tokens", status="broken", said=said, fix=fix)
    issued = "" if serve.oauth is None else f", and those of {serve.oauth.issuer}"
    said = f"{len(tokens)}, of {len(clients) + len(own)} clients{issued}"
    return Finding(name="tokens", status="ok", said=said)


def _held(trigger: Trigger) -> tuple[str, ...]:
    """What opens a trigger and nothing else."""
    match trigger:
        case McpTrigger():
            return trigger.tokens or ()
        case HttpTrigger():
            return trigger.auth.secrets if trigger.auth else ()
        case _:
            return ()


def _is_public(trigger: Trigger) -> bool:
    return isinstance(trigger, HttpTrigger) and trigger.public


def _ensembles(case: Case) -> Iterator[Ensemble]:
    library = Library(case.project)
    for name in library.names:
        try:
            yield library.get(name)
        except SpecError:
            continue  # `luthier check` tells
