"""Tools that live in this process: the built-in ones, and the registry that carries calls to them and to custom ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from luthier.clock import Clock, SystemClock
from luthier.context import CallContext
from luthier.taint import UNTRUSTED, Label, Labelled
from luthier.tools.call import ToolCall
from luthier.tools.result import Reply
from luthier.tools.tool import Tool
from luthier.uri import ToolUri

Act = Callable[[Labelled[dict[str, Any]], CallContext], Awaitable[Reply]]


class LocalTool(Protocol):
    """A tool that runs in this process. `label` is what its results carry; `timeout` is seconds, None no limit."""

    @property
    def tool(self) -> Tool: ...
    @property
    def label(self) -> Label: ...
    @property
    def timeout(self) -> float | None: ...
    async def carry(self, call: ToolCall) -> Reply:
        """Do it."""


class Builtin:
    """One of Luthier's own tools. It sees the labels of its arguments."""

    def __init__(
        self, tool: Tool, act: Act, *, label: Label = UNTRUSTED, timeout: float | None = None
    ) -> None:
        self.tool = tool
        self.label = label
        self.timeout = timeout
        self._act = act

    async def run(self, arguments: Labelled[dict[str, Any]], context: CallContext) -> Reply:
        return await self._act(arguments, context)

    async def carry(self, call: ToolCall) -> Reply:
        return await self.run(call.arguments, call.context)


class LocalTools:
    """All tools of this process by address. Replaced, not edited. Names must be unique: ToolDefinitionError."""

    def __init__(
        self,
        custom: Iterable[LocalTool] = (),
        builtin: Iterable[LocalTool] = (),
        *,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._tools = {entry.tool.uri: entry for entry in (*builtin, *custom)}

    def find(self, uri: ToolUri) -> LocalTool | None:
        """The tool at that address, or None."""
        return self._tools.get(uri)

    def list(self) -> tuple[Tool, ...]:
        """All tools, in the order of their addresses."""
        return tuple(self._tools[uri].tool for uri in sorted(self._tools))

    async def run(self, call: ToolCall) -> Reply:
        """Carry a call. Raises NotFoundError with near names, and CallTimeoutError when its time is up."""
        raise NotImplementedError
