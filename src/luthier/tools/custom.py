"""A Python function becomes a tool: name, description and schema from the function itself, by pydantic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from luthier.context import CallContext
from luthier.taint import UNTRUSTED, Label
from luthier.tools.call import ToolCall
from luthier.tools.result import Reply
from luthier.tools.tool import JsonObject, Tool

P = ParamSpec("P")
R = TypeVar("R")


class CustomTool(Generic[P, R]):
    """A function and what the house knows of it. Called directly, it is still the plain function."""

    tool: Tool
    label: Label
    timeout: float | None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Reply:
        """Run it on JSON arguments. What the function raises comes back as an error reply."""
        raise NotImplementedError

    async def carry(self, call: ToolCall) -> Reply:
        return await self.run(call.arguments.value, call.context)


@overload
def tool(function: Callable[P, R], /) -> CustomTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str = "",
    timeout: float | None = 30.0,
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
    timeout: float | None = 30.0,
    label: Label = UNTRUSTED,
    annotations: JsonObject | None = None,
) -> CustomTool[P, R] | Callable[[Callable[P, R]], CustomTool[P, R]]:
    """Make a tool of a function. `timeout` is seconds, None for no limit; `label` is what its results carry.

    Raises ToolDefinitionError when the function cannot be a tool.
    """
    raise NotImplementedError
