"""`builtin://model/PROVIDER`: a model turn as a call through the gate, with its usage and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.models.messages import Turn
from luthier.models.prices import Price, cost_of
from luthier.taint import UNTRUSTED, Label, Labelled
from luthier.tools.builtin import Builtin
from luthier.tools.result import Reply
from luthier.tools.tool import Tool
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.context import CallContext
    from luthier.models.messages import Answer
    from luthier.models.model import Model

TIMEOUT = 120.0
"""Seconds for one turn, where nothing else is said: long answers take a minute and more."""

_TEXT = {"type": "string", "minLength": 1}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "model": _TEXT,
        "system": {"type": "string"},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"role": {"enum": ["user", "assistant"]}, "content": _TEXT},
                "required": ["role", "content"],
                "additionalProperties": False,
            },
        },
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_tokens": {"type": "integer", "minimum": 1},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2},
        "presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
        "stop": {"type": "array", "items": _TEXT},
        "seed": {"type": "integer"},
        "schema": {"type": "object"},
    },
    "required": ["model", "messages"],
    "additionalProperties": False,
}


def model_uri(provider: str) -> ToolUri:
    """Where the models of a provider are called."""
    return ToolUri.builtin(f"model/{provider}")


def model_tool(
    provider: str,
    model: Model,
    *,
    label: Label = UNTRUSTED,
    timeout: float = TIMEOUT,
    prices: Mapping[str, Price] | None = None,
    vendor: str = "",
) -> Builtin:
    """The tool that carries turns to a provider; its results join all that the model saw to `label`.

    `prices` and `vendor` say what a turn costs, as `cost_of` takes them.
    """

    async def act(arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:  # noqa: ARG001  (the port's)
        turn = msgspec.convert(arguments.value, Turn)
        answer = await model.turn(turn)
        cost = cost_of(answer.usage, turn.model, vendor=vendor, prices=prices or {})
        return Reply(structured=_told(answer, provider, cost))

    tool = Tool(
        uri=model_uri(provider),
        description=f"One turn of a model of {provider}.",
        input_schema=SCHEMA,
        annotations={"readOnlyHint": True, "openWorldHint": True},
    )
    return Builtin(tool, act, label=label, timeout=timeout)


def _told(answer: Answer, provider: str, cost: float | None) -> dict[str, Any]:
    """`value` is there only where the answer is the JSON that a schema asked for."""
    usage = answer.usage
    told = {
        "text": answer.text,
        "provider": provider,
        "model": answer.model,
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.input_tokens + usage.output_tokens,
            "cacheReadTokens": usage.cache_read_tokens,
            "cacheWriteTokens": usage.cache_write_tokens,
        },
        "cost": cost,
        "stop": answer.stop,
        "requestId": answer.request_id,
    }
    return told if answer.value is msgspec.UNSET else {**told, "value": answer.value}
