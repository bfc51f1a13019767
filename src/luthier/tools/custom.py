"""A Python function becomes a tool: name, description and schema come from the function itself, by pydantic.

    @tool
    def add(a: int, b: Annotated[int, Field(description="The other one")] = 1) -> int:
        \"\"\"Add two numbers.\"\"\"
        return a + b

The first paragraph of the docstring is the description. A parameter annotated `CallContext` is given the
context of the call and is not in the schema; neither is one annotated `Caller`, by which an async function
tells and asks whoever called from outside. Functions that are not async run in a thread.
"""

from __future__ import annotations

import inspect
from functools import partial, update_wrapper
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)

import msgspec
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from luthier.caller import NOBODY, Caller
from luthier.context import CallContext
from luthier.errors import CallerError, ToolDefinitionError
from luthier.redaction import logger
from luthier.taint import UNTRUSTED, Label
from luthier.text import one_line
from luthier.tools.hints import readable
from luthier.tools.pointers import pointer
from luthier.tools.result import Reply
from luthier.tools.source import BUILTIN_NAMES, CUSTOM_NAME
from luthier.tools.threads import in_thread
from luthier.tools.tool import JsonObject, Tool
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.tools.call import ToolCall

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_TIMEOUT = 30.0

_log = logger("luthier.tools")
_values = TypeAdapter[Any](Any)


class CustomTool(Generic[P, R]):
    """A function and what the house knows of it. Called directly, it is still the plain function."""

    def __init__(self, function: Callable[P, R], tool: Tool, *, label: Label, timeout: float | None) -> None:
        """Raises ToolDefinitionError when the parameters cannot be described."""
        self.tool = tool
        self.label = label
        self.timeout = timeout
        self._function: Callable[..., Any] = function
        self._parameters = _Parameters(function)
        self.tool = msgspec.structs.replace(tool, input_schema=self._parameters.schema)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.tool.uri}>"

    async def run(self, arguments: dict[str, Any], context: CallContext, caller: Caller = NOBODY) -> Reply:
        """Run the function on JSON arguments. What it raises comes back as an error reply.

        Raises CallerError where the function asks a caller that cannot be asked.
        """
        try:
            given = self._parameters.read(arguments, context, caller)
        except ValidationError as error:
            return _error(_faults(error))
        try:
            if inspect.iscoroutinefunction(self._function):
                value = await self._function(**given)
            else:
                value = await in_thread(partial(self._function, **given), name=str(self.tool.uri))
                if inspect.isawaitable(value):
                    value = await value
            return _reply(value)
        except CallerError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a stranger's function does is an answer)
            _log.info("%s failed", self.tool.uri, exc_info=True)
            return _error(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    async def carry(self, call: ToolCall) -> Reply:
        return await self.run(call.arguments.value, call.context, call.caller)


@overload
def tool(function: Callable[P, R], /) -> CustomTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str = "",
    timeout: float | None = DEFAULT_TIMEOUT,
    label: Label = UNTRUSTED,
    annotations: JsonObject | None = None,
) -> Callable[[Callable[P, R]], CustomTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str = "",
    timeout: float | None = DEFAULT_TIMEOUT,
    label: Label = UNTRUSTED,
    annotations: JsonObject | None = None,
) -> CustomTool[P, R] | Callable[[Callable[P, R]], CustomTool[P, R]]:
    """Make a tool of a function.

    `timeout` is seconds for one call, None for no limit; `label` is what its results carry; `annotations` are
    MCP's hints (`readOnlyHint`, …). Raises ToolDefinitionError when the function cannot be a tool.
    """

    def made(function: Callable[P, R]) -> CustomTool[P, R]:
        defined = Tool(
            uri=ToolUri.custom(_name(function, name)),
            description=_description(function, description),
            title=title,
            input_schema={},
            annotations=annotations or {},
        )
        return CustomTool(function, defined, label=label, timeout=timeout)

    return made if function is None else made(function)


class _JsonSchema(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  (pydantic's own declaration)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False  # "A" for `a` tells nobody anything


class _Parameters:
    """What a function takes: as a JSON Schema, and read from JSON arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._contexts: list[str] = []
        self._callers: list[str] = []
        # From the model's fields to the parameters: these may have names that no field may have.
        self._names: dict[str, str] = {}
        fields: dict[str, Any] = {}
        try:
            hints = get_type_hints(_hinted(function), include_extras=True)
            for parameter in _open_parameters(function):
                hint = hints.get(parameter.name, Any)
                if hint is CallContext or CallContext in get_args(hint):
                    self._contexts.append(_by_keyword(parameter))
                    continue
                if hint is Caller or Caller in get_args(hint):
                    self._callers.append(_by_keyword(_of_async(parameter, function)))
                    continue
                field = f"parameter_{len(fields)}"
                self._names[field] = _by_keyword(parameter)
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[field] = (Annotated[readable(hint), Field(alias=parameter.name)], default)
            self._model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
            self.schema: JsonObject = self._model.model_json_schema(schema_generator=_JsonSchema)
        except ToolDefinitionError:
            raise
        except Exception as error:
            named = getattr(function, "__name__", function)
            raise ToolDefinitionError(
                f"{named} cannot be a tool: its parameters cannot be described ({one_line(str(error))}).",
                hint="Types that are named in the hints must be importable names of the function's module.",
            ) from error
        del self.schema["title"]
        self.schema.setdefault("properties", {})

    def read(self, arguments: dict[str, Any], context: CallContext, caller: Caller) -> dict[str, Any]:
        """The function's keyword arguments. Raises ValidationError."""
        model = self._model.model_validate(arguments)
        given = {name: getattr(model, field) for field, name in self._names.items()}
        return given | dict.fromkeys(self._contexts, context) | dict.fromkeys(self._callers, caller)


def _open_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """What is left to give. What a partial function was given already is its maker's and may be secret."""
    given = function.keywords if isinstance(function, partial) else {}
    return [it for it in inspect.signature(function).parameters.values() if it.name not in given]


def _hinted(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _of_async(parameter: inspect.Parameter, function: Callable[..., Any]) -> inspect.Parameter:
    if inspect.iscoroutinefunction(function):
        return parameter
    raise ToolDefinitionError(
        f"{parameter} cannot be a parameter of a tool that is not async: telling and asking is awaited.",
        hint="Write `async def`.",
    )


def _by_keyword(parameter: inspect.Parameter) -> str:
    if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return parameter.name
    raise ToolDefinitionError(
        f"{parameter} cannot be a parameter of a tool: arguments are given by name.",
        hint="Write each parameter out, without *, ** and /.",
    )


def _name(function: Callable[..., Any], given: str | None) -> str:
    name = getattr(function, "__name__", "") if given is None else given
    if not CUSTOM_NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} cannot be the name of a tool: letters, digits, _ and -, at most 64.",
            hint="Give one with @tool(name=…)." if given is None else "",
        )
    if name in BUILTIN_NAMES:
        raise ToolDefinitionError(f"{name!r} is the name of a built-in tool.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name} cannot be a tool: it yields, and a tool answers once.")
    return name


def _description(function: Callable[..., Any], given: str | None) -> str:
    written = (function.__doc__ if given is None else given) or ""
    first = inspect.cleandoc(written).strip().split("\n\n")[0]
    text = " ".join(first.split()) if given is None else written.strip()
    if not text:
        raise ToolDefinitionError(
            f"{getattr(function, '__name__', function)} cannot be a tool: nothing says what it does.",
            hint="Write a docstring, or give @tool(description=…).",
        )
    return text


def _reply(value: Any) -> Reply:
    if isinstance(value, Reply):
        return value
    if type(value) is str:
        return _text(value)
    # By way of JSON: NaN becomes null, keys become strings, models and dates what pydantic makes of them.
    encoded = _values.dump_json(value)
    plain = msgspec.json.decode(encoded)
    return _text(plain) if isinstance(plain, str) else _text(encoded.decode(), structured=plain)


def _text(text: str, **more: Any) -> Reply:
    return Reply(blocks=[{"type": "text", "text": text}], **more)


def _error(text: str) -> Reply:
    return _text(text, is_error=True)


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{pointer(fault['loc']) or 'arguments'}: {fault['msg']}" for fault in faults]
    return f"Invalid arguments: {'; '.join(told)}"
