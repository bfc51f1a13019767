"""Tools that live in this process: the built-in ones, and the registry that carries calls to local tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.caller import NO_LINE, Caller, Lines
from luthier.clock import Clock, Deadline, SystemClock
from luthier.errors import CallerError, CallTimeoutError, NotFoundError, ToolDefinitionError
from luthier.taint import UNTRUSTED, Confidentiality, Label, Labelled
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from luthier.caller import Ability, Level, Line
    from luthier.context import CallContext
    from luthier.tools.call import ToolCall
    from luthier.tools.result import Reply
    from luthier.tools.tool import Tool
    from luthier.uri import ToolUri

    Act = Callable[[Labelled[dict[str, Any]], CallContext], Awaitable[Reply]]


class LocalTool(Protocol):
    """A tool that runs in this process.

    `label` is what its results carry, besides what the gate joins to them. `timeout` is seconds for one call,
    None for no limit.
    """

    @property
    def tool(self) -> Tool: ...
    @property
    def label(self) -> Label: ...
    @property
    def timeout(self) -> float | None: ...
    async def carry(self, call: ToolCall) -> Reply:
        """Do what the call asks."""


class Builtin:
    """One of Luthier's own tools. Its `act` sees the labels of its arguments."""

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
    """All tools of this process by address. Replaced, not edited."""

    def __init__(
        self,
        custom: Iterable[LocalTool] = (),
        builtin: Iterable[LocalTool] = (),
        *,
        unlisted: Iterable[LocalTool] = (),
        clock: Clock | None = None,
        lines: Lines | None = None,
    ) -> None:
        """`unlisted` ones are called by those who know of them, and offered to nobody.

        `lines` lead to the clients that calls are made for.

        Raises ToolDefinitionError when two tools share a name, across custom and built-in ones too.
        """
        self._clock = clock or SystemClock()
        self._lines = lines or Lines()
        self._tools: dict[ToolUri, LocalTool] = {}
        names: dict[str, ToolUri] = {}
        hidden = tuple(unlisted)
        self._unlisted = frozenset(entry.tool.uri for entry in hidden)
        for entry in (*hidden, *builtin, *custom):
            uri = entry.tool.uri
            if taken := names.get(uri.name):
                raise ToolDefinitionError(f"{uri} cannot be registered: its name is taken by {taken}.")
            names[uri.name] = uri
            self._tools[uri] = entry

    def find(self, uri: ToolUri) -> LocalTool | None:
        """The tool at that address, or None."""
        return self._tools.get(uri)

    def get(self, uri: ToolUri) -> LocalTool:
        """The tool at that address. Raises NotFoundError with near addresses."""
        if entry := self._tools.get(uri):
            return entry
        raise NotFoundError("tool", str(uri), near=near(str(uri), map(str, self._tools)))

    def list(self) -> tuple[Tool, ...]:
        """All tools that are offered, in the order of their addresses."""
        return tuple(self._tools[uri].tool for uri in sorted(self._tools.keys() - self._unlisted))

    async def run(self, call: ToolCall) -> Reply:
        """Carry a call.

        It may take its own timeout, else the tool's, and never goes past the deadline of its context. Raises
        NotFoundError with near addresses, CallTimeoutError when the time is up.
        """
        entry = self.get(call.uri)
        seconds = entry.timeout if call.timeout is None else call.timeout
        left = None
        if call.context.deadline is not None:
            left = call.context.deadline - self._clock.monotonic()
            seconds = left if seconds is None else min(seconds, left)
        deadline, last = Deadline(self._clock, seconds), Deadline(self._clock, left)
        line = self._lines.of(call.context.root)
        try:
            async with deadline:
                if line is NO_LINE:
                    return await entry.carry(call)
                async with last:  # which is not paused
                    return await _carried(entry, call, _Guarded(line, call, deadline))
        except TimeoutError:
            if not deadline.expired and not last.expired:
                raise
            message = f"{call.uri} did not answer within {seconds:g} s."
            raise CallTimeoutError(message, tool=call.uri.name, phase="call", sent=True) from None


async def _carried(entry: LocalTool, call: ToolCall, line: _Guarded) -> Reply:
    reply = await entry.carry(msgspec.structs.replace(call, caller=Caller(line)))
    return msgspec.structs.replace(reply, label=reply.label.join(UNTRUSTED)) if line.asked else reply


class _Guarded:
    """The line that one call of a tool is given: what it was given as secret does not go out by it.

    The tool's own time stands still while somebody is asked, and what is answered is nobody's word here.
    """

    def __init__(self, line: Line, call: ToolCall, deadline: Deadline) -> None:
        self._line = line
        self._deadline = deadline
        label = call.arguments.whole.join(call.context.control)
        self._open = label.confidentiality is not Confidentiality.secret
        self.asked = False

    def can(self, what: Ability) -> bool:
        return self._open and self._line.can(what)

    async def log(self, level: Level, text: str) -> None:
        if self._open:
            await self._line.log(level, text)

    async def progress(self, done: float, total: float | None, message: str) -> None:
        await self._line.progress(done, total, message if self._open else "")

    async def ask(self, what: Ability, params: Mapping[str, Any], key: str) -> dict[str, Any]:
        if not self._open:
            raise CallerError("The caller is not asked by a tool that was given something secret.")
        self.asked = True
        with self._deadline.paused():
            return await self._line.ask(what, params, key)
