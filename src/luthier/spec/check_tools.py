"""Checks `tools` steps against what their servers' tools were when they were last listed: nothing is started.

Only what is certain is told. What an expression gives is not known before the run; where a schema's top has
alternatives, they are judged only if every argument is written out.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from luthier.errors import SchemaError
from luthier.expr.scan import has_expression
from luthier.spec.control import FlowStep
from luthier.spec.ensemble import ToolsConfig
from luthier.spec.values import WORDS
from luthier.spec.words import listed, meant, quoted
from luthier.spec.written import parts
from luthier.tools.arguments import prepare
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from luthier.errors import Fault
    from luthier.expr import Compiled
    from luthier.spec.control import FlowItem
    from luthier.spec.ensemble import Ensemble, Input, Step
    from luthier.spec.project import Project
    from luthier.tools.schema import SchemaFault
    from luthier.tools.tool import JsonObject

KnownTools = dict[str, dict[str, "JsonObject"]]
"""The input schemas of tools, by server and tool, as far as they are known."""

_COMPOSED = frozenset(
    {
        *(
            "$ref",
            "$dynamicRef",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "patternProperties",
            "propertyNames",
        ),
        *("dependentRequired", "dependentSchemas", "dependencies", "minProperties", "maxProperties"),
    }
)
"""What makes the top of a schema say more than the names and the values of its properties."""

_WORDS = {str(type_): word for type_, word in WORDS.items()} | {"null": "nothing"}
_OF_TYPES = {"integer": {"integer", "number"}, "number": {"number", "integer"}}


def check_tools(ensemble: Ensemble, project: Project, known: KnownTools) -> Iterator[Fault]:
    """Tools that are not there, and arguments that they would not take."""
    for step, inputs, where in _calls(ensemble):
        config = step.config
        if not isinstance(config, ToolsConfig):
            continue
        entry = project.servers.get(config.server)
        tools = known.get(config.server)
        if entry is not None and (fault := _filtered(step, config, entry.tools.allow, entry.tools.deny)):
            yield fault
        elif tools is not None and config.tool not in tools:
            message = (
                f"the server {quoted(config.server)} had no tool {quoted(config.tool)} when it was last asked"
            )
            other = f"luthier tools list {config.server}"
            hint = meant(config.tool, tools, otherwise=other)
            yield step.origin.fault(message, "config", "tool", suggestion=hint, warning=True)
        elif tools is not None:
            call = _Call(ensemble, step, config, tools[config.tool], where)
            yield from call.of_inputs() if inputs is None else call.of_arguments(inputs)


def _calls(ensemble: Ensemble) -> Iterator[tuple[Step, Compiled | None, str]]:
    """Each step with what it is given, and the name of its place where that has inputs of its own.

    An evaluator is given something else than the ensemble's inputs.
    """
    steps = {step.name: step for step in ensemble.steps}
    places = list(_places(ensemble.flow or ()))
    judges = {one.scoring.evaluator for one in (*ensemble.steps, *places) if one.scoring is not None}
    for step in ensemble.steps:
        known = step.inputs is not None if step.name in judges else ensemble.flow is None
        if known:
            yield step, step.inputs, ""
    for place in places:
        if (placed := steps.get(place.step)) is not None:
            own = place.inputs is not None
            yield placed, place.inputs if own else placed.inputs, place.name if own else ""


def _places(items: Iterable[FlowItem]) -> Iterator[FlowStep]:
    for item in items:
        if isinstance(item, FlowStep):
            yield item
        else:
            yield from _places(inner for inner, _ in parts(item))


def _filtered(
    step: Step, config: ToolsConfig, allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> Fault | None:
    """A tool that the entry leaves out."""

    def covers(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(config.tool, pattern) for pattern in patterns)

    key = "deny" if covers(deny) else "allow" if allow is not None and not covers(allow) else ""
    if not key:
        return None
    message = f"the tool {quoted(config.tool)} is left out by `tools.{key}` of {quoted(config.server)}"
    return step.origin.fault(message + ": the call will be refused", "config", "tool", warning=True)


class _Call:
    """One step beside the schema of its tool."""

    def __init__(
        self, ensemble: Ensemble, step: Step, config: ToolsConfig, schema: JsonObject, where: str
    ) -> None:
        self._ensemble = ensemble
        self._step = step
        self._config = config
        self._schema = schema
        self._where = where
        self._is_plain = not _COMPOSED & schema.keys()
        properties = schema.get("properties")
        self._properties: dict[str, Any] = properties if isinstance(properties, dict) else {}

    def of_arguments(self, inputs: Compiled) -> Iterator[Fault]:
        """Arguments that are written as a mapping."""
        given = inputs.source
        if not isinstance(given, dict):
            return
        open_ = {name for name, value in given.items() if _is_open(value)}
        if open_ and not self._is_plain:
            return
        judged = {name: value for name, value in given.items() if name not in open_}
        for fault in self._faults(judged):
            if fault.rule == "required" and fault.path == "":
                continue
            yield self._fault(fault)
        if self._is_plain:
            missing = [name for name in self._required() if name not in given]
            for name in missing:
                hint = meant(name, given.keys() - self._properties.keys())
                yield self._at("inputs", message=f"lacks {quoted(name)}", suggestion=hint)
            for name in sorted(open_ - self._properties.keys()) if self._is_closed() else ():
                known = f"it takes {listed(self._properties)}" if self._properties else "it takes none"
                hint = meant(name, self._properties, otherwise=known)
                yield self._at("inputs", name, message=f"has no {quoted(name)}", suggestion=hint)

    def of_inputs(self) -> Iterator[Fault]:
        """The ensemble's inputs, of which those are sent that the schema names."""
        if not self._is_plain:
            return
        declared = self._ensemble.inputs
        for name in self._required():
            if name not in declared:
                message = f"{self._tool()} needs {quoted(name)}, which is no input of the ensemble"
                hint = meant(name, declared, otherwise="declare it, or give the step `inputs` of its own")
                yield self._step.origin.fault(message, "config", "tool", suggestion=hint, warning=True)
        for name, one in declared.items():
            if name in self._properties:
                yield from self._input(name, one)

    def _input(self, name: str, one: Input) -> Iterator[Fault]:
        wanted = self._properties[name].get("type") if isinstance(self._properties[name], dict) else None
        kinds: set[str] = (
            {wanted} if isinstance(wanted, str) else set(wanted) if isinstance(wanted, list) else set()
        )
        origin = self._ensemble.origin
        if one.type is not None and kinds and not kinds & _OF_TYPES.get(one.type, {one.type}):
            words = " or ".join(_WORDS.get(kind, str(kind)) for kind in sorted(kinds))
            message = f"the input {quoted(name)} is {WORDS[one.type]}, and {self._tool()} takes {words}"
            yield origin.fault(message, "inputs", name)
        elif one.default is not None and one.default.is_constant:
            for fault in self._faults({name: one.default.source}):
                if fault.path.startswith("/"):
                    message = f"the default of {quoted(name)} does not fit {self._tool()}: {fault.message}"
                    yield origin.fault(message, "inputs", name, warning=True)

    def _faults(self, given: dict[str, Any]) -> tuple[SchemaFault, ...]:
        """What the gate would say of arguments that are written out."""
        try:
            return Schema(self._schema).faults(prepare(self._schema, given))
        except SchemaError:
            return ()  # the gate tells of it

    def _required(self) -> list[str]:
        required = self._schema.get("required")
        return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []

    def _is_closed(self) -> bool:
        return self._schema.get("additionalProperties") is False

    def _fault(self, fault: SchemaFault) -> Fault:
        keys = [key.replace("~1", "/").replace("~0", "~") for key in fault.path.split("/")[1:]]
        way = [int(key) if key.isdecimal() else key for key in keys]
        shown = f"{quoted('.'.join(keys))} " if keys else ""
        said, *hint = re.split("; (?=did you mean|known are)", fault.message)
        message = f"does not take this: {shown}{said}"
        return self._at("inputs", *way, message=message, suggestion="".join(hint))

    def _at(self, *keys: str | int, message: str, suggestion: str = "") -> Fault:
        """A fault at the deepest place that is written."""
        origin = self._step.origin
        if self._where:
            where = f" (at {quoted(self._where)} in the flow)"
            return origin.fault(f"{self._tool()} {message}{where}", "config", "tool", suggestion=suggestion)
        while len(keys) > 1 and not origin.has(*keys):
            keys = keys[:-1]
        return origin.fault(f"{self._tool()} {message}", *keys, suggestion=suggestion)

    def _tool(self) -> str:
        return quoted(f"mcp://{self._config.server}/{self._config.tool}")


def _is_open(value: Any) -> bool:
    """Whether an expression decides about a part of it."""
    match value:
        case str():
            return has_expression(value)
        case dict():
            return any(map(_is_open, value.values()))
        case list():
            return any(map(_is_open, value))
        case _:
            return False
