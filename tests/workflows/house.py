"""A house around a run: a gate that answers as it is told, and the rest of what a run needs."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import FakeClock, settle
from luthier.errors import NotFoundError
from luthier.events import Event, Observers
from luthier.govern.endorsement import endorsed, misfit, source_of
from luthier.spec import Ensemble, Project, ServerEntry, read_ensemble
from luthier.taint import UNTRUSTED, Label, Labelled
from luthier.tools import Refusal, Reply, Tool, ToolCall, ToolResult
from luthier.workflows import Entry, MemoryRuns, Run, Services, run_ensemble
from luthier.workflows.runs import Wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from luthier.context import CallContext
    from luthier.tools.closed import ClosedType
    from luthier.uri import ToolUri

LONG = 30.0
"""Seconds of real time after which a test has hung."""


class Gate:
    """Answers calls of `server/tool`: a value, what a function makes of the arguments, or an exception."""

    def __init__(
        self,
        tools: Mapping[str, Any] | None = None,
        *,
        schemas: Mapping[str, Any] | None = None,
        hints: Mapping[str, Any] | None = None,
        label: Label = UNTRUSTED,
    ) -> None:
        self.tools = dict(tools or {})
        self.schemas = dict(schemas or {})
        self.hints = dict(hints or {})
        self.label = label
        self.calls: list[ToolCall] = []
        self.cancelled: list[str] = []
        self.endorsements: list[tuple[Labelled[Any], str, str, CallContext]] = []

    @property
    def arguments(self) -> list[dict[str, Any]]:
        return [call.arguments.value for call in self.calls]

    async def call(self, call: ToolCall, /) -> ToolResult | Refusal:
        self.calls.append(call)
        answer = self._known(call.uri)
        if call.passed is not None and not isinstance(answer, Refusal):
            await call.passed()
        try:
            if callable(answer):
                answer = answer(call.arguments.value)
                if inspect.isawaitable(answer):
                    answer = await answer
        except asyncio.CancelledError:
            self.cancelled.append(call.uri.name)
            raise
        if isinstance(answer, list) and answer and isinstance(answer[0], Turn):
            answer = answer.pop(0).answer
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Refusal):
            return msgspec.structs.replace(answer, uri=call.uri, call_id=call.id)
        reply = answer if isinstance(answer, Reply) else Reply(structured=answer)
        label = self.label.join(call.context.control)
        return ToolResult(uri=call.uri, call_id=call.id, reply=reply, duration=1.0, label=label)

    def endorse(
        self, value: Labelled[Any], closed: ClosedType, reason: str, context: CallContext, /
    ) -> Labelled[Any]:
        self.endorsements.append((value, closed.words, reason, context))
        done = endorsed(value, closed, source_of(context))
        if done is None:
            raise misfit(closed, context)
        return done

    async def tool(self, uri: ToolUri, context: CallContext, /, *, list_age: float | None = None) -> Tool:
        assert context.step
        assert list_age is None or list_age > 0
        answer = self.schemas.get(_path(uri), {"type": "object"})
        if isinstance(answer, BaseException):
            raise answer
        return Tool(uri=uri, input_schema=answer, annotations=self.hints.get(_path(uri), {}))

    def _known(self, uri: ToolUri) -> Any:
        try:
            return self.tools[_path(uri)]
        except KeyError:
            raise NotFoundError("tool", uri.name) from None


class Turn(msgspec.Struct, frozen=True):
    """One of several answers, given in turn."""

    answer: Any


def turns(*answers: Any) -> list[Turn]:
    return [Turn(answer) for answer in answers]


def _path(uri: ToolUri) -> str:
    return f"{uri.server}/{uri.name}"


def refusal(kind: str, reason: str, **rest: Any) -> Refusal:
    from luthier.uri import ToolUri

    return Refusal(uri=ToolUri.builtin("x"), call_id="", kind=kind, reason=reason, **rest)


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Kept(MemoryRuns):
    """Runs in memory, their records by id."""

    @property
    def records(self) -> dict[str, tuple[Entry, ...]]:
        return {row.id: self.read(row.id) for row in self.list(Wanted(limit=1000, nested=True))}


class House:
    """Everything that a run needs, with a clock that is turned by hand."""

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        root: Path | None = None,
        servers: Sequence[ServerEntry] = (),
        ensembles: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        expose_env: tuple[str, ...] = (),
        records: Any = None,
    ) -> None:
        self.gate = gate or Gate()
        self.clock = FakeClock()
        self.heard = Heard()
        self.kept = records or Kept()
        self.library = {one.name: one for one in map(read, ensembles)}
        ids = iter(f"run-{number}" for number in range(1, 1000))
        self.services = Services(
            gateway=self.gate,
            project=Project(
                root=root or Path("/nowhere"),
                servers={server.id: server for server in servers},
                expose_env=expose_env,
            ),
            clock=self.clock,
            observers=Observers([self.heard]),
            ensembles=self.library.__getitem__,
            environ=environ or {},
            runs=self.kept,
            new_id=lambda: next(ids),
        )

    async def run(self, text: str | Ensemble, inputs: Any = None, **rest: Any) -> Run:
        """Run it, in real time as long as a test may take."""
        ensemble = read(text) if isinstance(text, str) else text
        given = inputs if isinstance(inputs, Labelled) else Labelled(inputs or {})
        async with asyncio.timeout(LONG):
            return await run_ensemble(ensemble, given, services=self.services, **rest)

    @asynccontextmanager
    async def running(self, text: str, inputs: Any = None, **rest: Any) -> AsyncIterator[asyncio.Task[Run]]:
        """A run that goes on while the body turns the clock."""
        task = asyncio.get_running_loop().create_task(self.run(text, inputs, **rest))
        try:
            await settle()
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=LONG)


def read(text: str) -> Ensemble:
    return read_ensemble(text, file="test.yaml")


def entry(id: str = "s", **rest: Any) -> ServerEntry:
    return ServerEntry(id=id, command="python", **rest)


def kinds(run: Run) -> list[str]:
    return [entry.kind for entry in run.record]
