"""What a server sees of its host, and wants of it: arguments, environment, questions."""

from __future__ import annotations

import json
import os

from tests.faults.modes.mode import acts, always, mode
from tests.faults.peer import text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from tests.faults.peer import Call, Json, Peer

STRICT: Json = {
    "name": {"type": "string"},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "either": {"anyOf": [{"type": "array"}, {"type": "string"}]},
    "filter": {"type": "object"},
    "flag": {"type": "boolean"},
    "count": {"type": "integer"},
}

QUESTIONS = ("ping", "roots/list", "sampling/createMessage", "elicitation/create", "nonsense/ask")


@mode
def strict_arguments(peer: Peer) -> None:
    """A server that refuses what its schema does not name, and every null where the schema has none."""

    @acts(peer, {"type": "object", "properties": STRICT, "additionalProperties": False})
    def act(call: Call) -> Json:
        unknown = sorted(call.arguments.keys() - STRICT.keys())
        nulls = sorted(key for key, value in call.arguments.items() if value is None and key != "maybe")
        if unknown or nulls:
            return text(f"unknown {unknown}, null {nulls}", isError=True)
        return text(json.dumps(call.arguments))


@mode
def asks_the_host(peer: Peer) -> None:
    """A server that asks its host for this and that while a call is under way."""

    @acts(peer)
    def act(_: Call) -> Json:
        answers = {method: peer.ask(method, method) for method in QUESTIONS}
        return text(json.dumps(answers))


@mode
def input_required(peer: Peer) -> None:
    """A modern server that wants more from a person before it goes on."""
    questions = {"q": {"method": "elicitation/create", "params": {}}}
    peer.tool(
        "act", always({"resultType": "input_required", "requestState": "x", "inputRequests": questions})
    )


@mode
def environment(peer: Peer) -> None:
    """A server that shows the environment, the folder and the arguments it was started with."""
    seen = {"env": dict(os.environ), "cwd": os.getcwd(), "args": peer.arguments}  # noqa: PTH109  (as it is)
    peer.tool("act", always(text(json.dumps(seen))))
