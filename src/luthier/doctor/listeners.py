"""What `luthier serve` would offer, and whether every caller of it is known. No token is read."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from luthier.doctor.finding import Case, Finding
from luthier.errors import SpecError
from luthier.runtime import Library
from luthier.secrets import find
from luthier.spec import McpTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import Ensemble


def listeners(case: Case) -> Iterator[Finding]:
    serve = case.project.serve
    offered = [
        (ensemble, trigger)
        for ensemble in _ensembles(case)
        for trigger in ensemble.triggers
        if isinstance(trigger, McpTrigger)
    ]
    if not offered and not serve.tools and not serve.clients:
        yield Finding(name="serve", status="off", said="nothing is offered to clients")
        return
    said = f"{len(offered)} ensembles and {len(serve.tools)} addresses of tools are offered"
    if importlib.util.find_spec("mcp") is None:
        fix = "Run: pip install 'luthier[serve]'"
        yield Finding(name="serve", status="broken", said=f"{said}, and the package mcp is missing", fix=fix)
    else:
        yield Finding(name="serve", status="ok", said=said)
    tokens = [token for client in serve.clients.values() for token in client.tokens]
    tokens += [token for _, trigger in offered for token in trigger.tokens or ()]
    if not tokens:
        fix = "Make one with `luthier serve --new-token`; over pipes none is needed."
        yield Finding(
            name="tokens", status="warning", said="nobody has one: --http refuses to start", fix=fix
        )
        return
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
        yield Finding(name="tokens", status="broken", said=said, fix=fix)
    else:
        yield Finding(name="tokens", status="ok", said=f"{len(tokens)}, of {_holders(case, offered)} clients")


def _ensembles(case: Case) -> Iterator[Ensemble]:
    library = Library(case.project)
    for name in library.names:
        try:
            yield library.get(name)
        except SpecError:
            continue  # `luthier check` tells


def _holders(case: Case, offered: list[tuple[Ensemble, McpTrigger]]) -> int:
    own = sum(1 for _, trigger in offered if trigger.tokens)
    return own + sum(1 for client in case.project.serve.clients.values() if client.tokens)
