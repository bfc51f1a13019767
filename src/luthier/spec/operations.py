"""What a step's `config` may say, operation by operation; and the operations of later versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.expr.scan import has_expression
from luthier.spec.api import read_api
from luthier.spec.endorse import read_endorse
from luthier.spec.ensemble import CodeConfig, EnsembleConfig, ToolsConfig
from luthier.spec.hitl import read_hitl
from luthier.spec.scripts import script_path
from luthier.spec.storage import read_storage
from luthier.spec.think import read_think
from luthier.spec.transform import read_transform
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.spec.draft import Draft
    from luthier.spec.ensemble import Config, Operation
    from luthier.spec.reader import Found, Reader

LATER = frozenset(
    {
        "agent",
        "data",
        "email",
        "sms",
        "form",
        "html",
        "pdf",
        "queue",
        "autorag",
        "rag",
        "cookies",
        "telemetry",
        "convert",
        "chart",
        "scoring",
        "docs",
        "page",
        "template",
    }
)
"""Operations that the language has and this version does not."""

_ARGUMENTS = "a tool's arguments go under the step's `inputs`"
_TOOLS_HINTS = {
    "server": "did you mean mcp?",
    "params": _ARGUMENTS,
    "arguments": _ARGUMENTS,
    "args": _ARGUMENTS,
}
_INLINE = "write the code into a file under scripts/ and name it with `script`"
_CODE_HINTS = {"code": _INLINE, "function": _INLINE, "inline": _INLINE, "handler": _INLINE}


def read_operation(reader: Reader) -> Operation | None:
    """The step's operation; None, and a fault that lists those there are, for any other."""
    found = reader.take("operation")
    has = f"this version has {listed(READERS)}"
    if found is None:
        if agent := reader.take("agent"):
            message = f"the agent {quoted(str(agent.value))} cannot be used: this version has no agents"
            reader.sink.add(message, agent.path, suggestion=has)
        else:
            reader.sink.add("`operation` is missing", reader.path, suggestion=has)
        return None
    if not isinstance(found.value, str):
        reader.sink.wrong("text", *found)
    elif found.value in READERS:
        return cast("Operation", found.value)
    elif found.value in LATER:
        message = f"the operation {quoted(found.value)} is not in this version yet"
        reader.sink.add(message, found.path, suggestion=has)
    else:
        message = f"there is no operation {quoted(found.value)}"
        reader.sink.add(message, found.path, suggestion=meant(found.value, READERS, otherwise=has))
    return None


def read_config(operation: Operation, reader: Reader, draft: Draft) -> Config | None:
    """The `config` of a step. Its expressions are noted in the draft."""
    inner = reader.inner("config", required=True)
    return READERS[operation](inner, draft) if inner else None


def _tools(reader: Reader, _: Draft) -> Config | None:
    server, tool = _literal(reader, "mcp"), _literal(reader, "tool")
    config = {
        "timeout": reader.seconds("timeout"),
        "cache_discovery": reader.flag("cache_discovery"),
        "cache_ttl": reader.seconds("cache_ttl", "cacheTTL", per=1, zero=True),
    }
    reader.done(_TOOLS_HINTS)
    if server is None or tool is None:
        return None
    return ToolsConfig(server=server, tool=tool, **_given(config))


def _code(reader: Reader, _: Draft) -> Config | None:
    found = reader.take("script")
    written = _literal(reader, "script")
    reader.done(_CODE_HINTS)
    if written is None or found is None:
        return None
    try:
        return CodeConfig(script=script_path(written))
    except ValueError as error:
        reader.sink.add(str(error), found.path)
        return None


def _ensemble(reader: Reader, _: Draft) -> Config | None:
    name = _literal(reader, "ensemble", "name")
    reader.done()
    return EnsembleConfig(ensemble=name) if name is not None else None


READERS: dict[str, Callable[[Reader, Draft], Config | None]] = {
    "tools": _tools,
    "code": _code,
    "transform": read_transform,
    "ensemble": _ensemble,
    "endorse": read_endorse,
    "think": read_think,
    "api": read_api,
    "http": read_api,
    "storage": read_storage,
    "hitl": read_hitl,
}
"""The operations of this version."""


def _literal(reader: Reader, *names: str) -> str | None:
    """A text that is needed before anything runs, so it holds no expression."""
    text = reader.text(*names, required=True)
    if text is None:
        return None
    if has_expression(text):
        found = cast("Found", reader.raw(*names))
        reader.sink.add(f"{quoted(names[0])} must be plain text, not an expression", found.path)
        return None
    return text


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
