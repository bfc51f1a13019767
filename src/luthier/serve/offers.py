"""What a project offers to clients: ensembles by their triggers, as tools with a name and schemas. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, SpecError
from luthier.expr import Scope
from luthier.spec import ApiTrigger, Ensemble, McpTrigger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec import Input

STDIO = "stdio"
"""The client of a process that speaks to us over its pipes: who started us may see all that is offered."""

OWN = "trigger/"
"""How the ids of clients begin that hold a token of a trigger's own; no other id has a slash."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One ensemble as a tool."""

    ensemble: Ensemble
    trigger: McpTrigger

    @property
    def name(self) -> str:
        return self.trigger.name

    @property
    def description(self) -> str:
        return (
            self.trigger.description
            or self.ensemble.description
            or f"Execute the {self.ensemble.name} ensemble"
        )

    @property
    def is_silent(self) -> bool:
        """Whether a run of it asks its caller nothing, as far as its own steps tell."""
        return not any(step.operation in {"hitl", "ensemble"} for step in self.ensemble.steps)

    def is_for(self, client: str) -> bool:
        """Whether the client may know of it."""
        trigger = self.trigger
        if client == OWN + self.name:
            return True
        if client.startswith(OWN):
            return False
        if trigger.clients is not None:
            return client in trigger.clients
        return trigger.tokens is None or client == STDIO


def may_run(ensemble: Ensemble, client: str) -> bool:
    """Whether the client may run it by its own name: as an `api` trigger says, or as it may call its tool."""
    for trigger in ensemble.triggers:
        match trigger:
            case McpTrigger() if Offer(ensemble=ensemble, trigger=trigger).is_for(client):
                return True
            case ApiTrigger(clients=clients) if not client.startswith(OWN):
                if clients is None or client in clients:
                    return True
            case _:
                pass
    return False


def offers_of(ensembles: Iterable[Ensemble]) -> tuple[Offer, ...]:
    """All offers in the order of their names. Raises SpecError where two have one name."""
    found = [
        Offer(ensemble=ensemble, trigger=trigger)
        for ensemble in ensembles
        for trigger in ensemble.triggers
        if isinstance(trigger, McpTrigger)
    ]
    counted = Counter(offer.name for offer in found)
    faults = [
        Fault(
            f"two tools are offered as {offer.name!r}", file=offer.ensemble.file, suggestion="write `name: …`"
        )
        for offer in found
        if counted[offer.name] > 1
    ]
    if faults:
        raise SpecError(faults)
    return tuple(sorted(found, key=lambda offer: offer.name))


def input_schema(ensemble: Ensemble) -> dict[str, Any]:
    """The JSON Schema of an ensemble's inputs."""
    required = [name for name, declared in ensemble.inputs.items() if declared.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _property(name, declared) for name, declared in ensemble.inputs.items()},
    }
    return {**schema, "required": required} if required else schema


def _property(name: str, declared: Input) -> dict[str, Any]:
    found: dict[str, Any] = {"description": declared.description or f"Input field: {name}"}
    if declared.type is not None:
        found["type"] = declared.type
    if declared.enum is not None:
        found["enum"] = list(declared.enum)
    if declared.default is not None and declared.default.is_constant:
        found["default"] = declared.default.evaluate(Scope({}, now=0)).value
    return found
