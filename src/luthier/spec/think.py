"""The `config` of a `think` step: who is asked, what, and in which shape the answer is to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import SchemaError
from luthier.expr.scan import has_expression
from luthier.spec.ensemble import ThinkConfig
from luthier.spec.expressions import placed
from luthier.spec.words import kind, listed, quoted
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Reader

_PROVIDERS = "it stands under `providers:` of luthier.yaml"
_HINTS = {
    "apiKey": f"a key is a reference: {_PROVIDERS}",
    "api_key": f"a key is a reference: {_PROVIDERS}",
    "apiEndpoint": f"an address is `base_url`: {_PROVIDERS}",
    "base_url": _PROVIDERS,
    "responseFormat": "write the JSON Schema of the answer under `schema`",
    "response_format": "write the JSON Schema of the answer under `schema`",
    "stream": "an answer is had whole",
    "instructions": "write systemPrompt",
    "max_output_tokens": "write maxTokens",
}
_KEYWORDS = frozenset(
    {
        *("type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("$ref", "required", "additionalProperties", "not", "if", "prefixItems"),
    }
)
SETTINGS: dict[str, tuple[str, ...]] = {
    "model": ("model",),
    "prompt": ("prompt",),
    "system": ("system_prompt", "system"),
    "messages": ("messages",),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens",),
    "top_p": ("top_p",),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
    "stop": ("stop", "stop_sequences"),
    "seed": ("seed",),
}
"""What is handed to the model, and how it may be written; any of it may be an expression."""


def read_think(reader: Reader, draft: Draft) -> ThinkConfig | None:
    """Read it all, noting expressions in the draft; None, and faults, where something is wrong."""
    before = len(reader.sink.faults)
    provider = reader.text("provider")
    if provider is not None and has_expression(provider):
        message = "`provider` must be plain text, not an expression"
        reader.sink.add(message, reader.places["provider"])
    settings: dict[str, Compiled] = {}
    for name, names in SETTINGS.items():
        found = placed(reader.sink, reader.take(*names))
        if found is None:
            continue
        draft.uses.expressions[f"config.{name}"] = found
        if found.compiled is not None:
            settings[name] = found.compiled
            if found.compiled.is_constant:
                _check(reader, name, found)
    schema = _schema(reader)
    timeout = reader.seconds("timeout")
    reader.done(_HINTS)
    if len(reader.sink.faults) > before:
        return None
    return ThinkConfig(provider=provider or "", schema=schema, timeout=timeout, **settings)


def _check(reader: Reader, name: str, found: Any) -> None:
    """What stands there itself can be judged now; the gate judges what expressions give."""
    expected, value = _fault(name, found.value), found.value
    if not expected:
        return
    if isinstance(value, int | float | list) and not isinstance(value, bool) and expected != "text":
        what = "" if isinstance(value, list) else f", not {value}"
        reader.sink.add(f"{quoted(str(found.path[-1]))} must be {expected}{what}", found.path)
    else:
        reader.sink.wrong(expected, found.path, value)


def _fault(name: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "temperature":
            return "" if number and 0 <= value <= 2 else "a number from 0 to 2"  # noqa: PLR2004  (the APIs' bound)
        case "top_p":
            return "" if number and 0 <= value <= 1 else "a number from 0 to 1"
        case "frequency_penalty" | "presence_penalty":
            return "" if number and -2 <= value <= 2 else "a number from -2 to 2"  # noqa: PLR2004  (likewise)
        case "max_tokens":
            return "" if number and value == int(value) and value >= 1 else "a whole number of at least 1"
        case "seed":
            return "" if number and value == int(value) else "a whole number"
        case "stop":
            good = isinstance(value, str) or (
                isinstance(value, list) and all(isinstance(one, str) for one in value)
            )
            return "" if good else "a list of texts"
        case "messages":
            return "" if isinstance(value, list) and all(map(_is_message, value)) else MESSAGES
        case _:
            return "" if isinstance(value, str) else "text"


MESSAGES = "a list of messages, each `{role: user, content: …}`"
ROLES = ("system", "user", "assistant")


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"role", "content"} and value["role"] in ROLES


def _schema(reader: Reader) -> dict[str, Any] | None:
    found = reader.take("schema", "output_schema")
    if found is None:
        return None
    if not isinstance(found.value, dict):
        reader.sink.wrong("a JSON Schema", *found)
        return None
    if fault := schema_fault(found.value):
        reader.sink.add(f"{quoted(str(found.path[-1]))} cannot be used: {fault}", found.path)
    return found.value


def schema_fault(written: dict[str, Any]) -> str:
    """Why this is no JSON Schema that can be used; empty where it is one."""
    if not _KEYWORDS & written.keys():
        named = listed(map(quoted, list(written)[:3])) or kind({})
        return f"a JSON Schema says at least its `type`, and this says {named}"
    try:
        Schema(written).compile()
    except SchemaError as error:
        return error.message
    return ""
