"""TestConductor: a project whose tools are mocked, run through the same gate as in production.

Every execution has a Runtime of its own, opened for it and closed after it, so there is nothing to clean up.
State and audit are kept in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from luthier.connect import MemoryState
from luthier.connect.traffic import Traffic, read_traffic
from luthier.errors import MockError
from luthier.events import Event
from luthier.govern import MemoryAudit
from luthier.models import ScriptedModel
from luthier.models.tool import model_uri
from luthier.runtime import Library, Runtime
from luthier.runtime.parts import project_of
from luthier.spec.provider import USUAL
from luthier.taint import Label
from luthier.testing.mocks import Mocks, Named, named_tools, stage
from luthier.testing.recording import replayed
from luthier.testing.stand_ins import STEPS, with_stand_ins
from luthier.tools import Refusal, delivered
from luthier.uri import ToolUri
from luthier.workflows import Run
from luthier.workflows.record import StepEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from luthier.govern.guard import GateCall, Next, Up
    from luthier.models import Model
    from luthier.runtime.library import EnsembleSource
    from luthier.runtime.parts import Source
    from luthier.spec import Project
    from luthier.tools import ToolResult
    from luthier.workflows import StepStatus

T = TypeVar("T")

_MODELS = "builtin://model/"
_INSIDE = ("mcp://", "custom://", "builtin://save_to_memory", "builtin://storage")
"""What stays in the process: servers have been taken care of, custom tools are the test's own."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it passed the gate. `label` joins its arguments and its branch.

    `outcome` is `ok`, `error` (the tool's own), `refused`, or `failed`. `tokens` and `cost` are those of a
    model's turn, in US dollars; None where nobody knows the price.
    """

    uri: ToolUri
    arguments: dict[str, Any]
    label: Label
    step: str
    outcome: str
    tokens: int = 0
    cost: float | None = None

    @property
    def key(self) -> str:
        """`server:tool`, as mocks are written."""
        return f"{self.uri.server}:{self.uri.name}" if self.uri.server else str(self.uri)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution came to: the run, the calls that it made, and what was heard on the way."""

    run: Run
    calls: tuple[Call, ...]
    events: tuple[Event, ...]

    @property
    def success(self) -> bool:
        return self.run.success

    @property
    def output(self) -> Any:
        return self.run.output

    @property
    def error(self) -> dict[str, Any] | None:
        return self.run.error

    @property
    def label(self) -> Label:
        return self.run.label

    @property
    def steps(self) -> dict[str, StepStatus]:
        """Every step by its name."""
        return self.run.steps

    @property
    def duration(self) -> float:
        """Milliseconds."""
        return self.run.duration

    @property
    def turns(self) -> tuple[Call, ...]:
        """The calls that asked a model."""
        return tuple(call for call in self.calls if str(call.uri).startswith(_MODELS))

    @property
    def state(self) -> dict[str, Any]:
        """The fields of the run's state that steps have set, as they were at the end."""
        ends = (entry.data.state.value for entry in self.run.record if isinstance(entry.data, StepEnded))
        return {field: delivered(value) for fields in ends for field, value in (fields or {}).items()}


class TestConductor:
    """`await TestConductor.create(…)`, then `await conductor.execute_ensemble(name, inputs)`, or `play`.

    `results`, `calls` and `audit` hold what all executions did; `mocks` may be changed between them.
    """

    __test__ = False  # it is no test, whatever its name says to pytest

    def __init__(
        self,
        source: Source = None,
        *,
        mocks: Mocks | Mapping[str, Any] | None = None,
        models: Any = None,
        strict: bool = False,
        **parts: Any,
    ) -> None:
        self.project = project_of(source, root=None)
        given = {} if mocks is None or isinstance(mocks, Mocks) else mocks
        self.models = scripted(given.get("ai") if models is None else models, self.project)
        self.mocks = mocks if isinstance(mocks, Mocks) else read_mocks(given)
        self._stand_ins = dict.fromkeys(given.get("steps") or {})
        self.strict = strict
        self.results: list[Result] = []
        self.calls: list[Call] = []
        self.events: list[Event] = []
        self.audit = MemoryAudit()
        self._state = MemoryState()
        self._ensembles = tuple(parts.pop("ensembles", ()))
        self._observers = tuple(parts.pop("observers", ()))
        self._parts = parts

    @classmethod
    async def create(
        cls,
        *,
        project_path: Source = None,
        mocks: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        strict: bool = False,
        **parts: Any,
    ) -> Self:
        """A conductor for a project's folder, its file, or a mapping of the same shape; the nearest without.

        `mocks` is `{"tools": {"server:tool": answer}, "definitions": {server: {tool: …}}, "ai": answers,
        "steps": {step: answer}}`;
        `"replay"` names a recording that answers besides; the answers of models are those of a ScriptedModel,
        for all providers or by provider. What is not mocked is real, unless `strict`: then nothing leaves the
        process. `env` is all that `${env.X}` finds.
        `parts` are those of Runtime: clock, ensembles, tools, policies, approve.
        """
        environ = {} if env is None else {"environ": env}
        return cls(project_path, mocks=mocks, strict=strict, **environ, **parts)

    async def execute_ensemble(
        self, ensemble: EnsembleSource, inputs: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Result:
        """Run it. A run that fails is a result; a faulty file, a missing input and a missing mock raise."""
        calls, events = len(self.calls), len(self.events)

        async def act(runtime: Runtime) -> Run:
            return await runtime.run(ensemble, inputs, **more)

        library = Library(self.project, self._ensembles)
        if self._stand_ins:
            ensemble = with_stand_ins(library.get(ensemble), self._stand_ins)
        run = await self._with(act, named_tools(library, ensemble, *self._ensembles))
        result = Result(run=run, calls=tuple(self.calls[calls:]), events=tuple(self.events[events:]))
        self.results.append(result)
        return result

    def play(
        self, ensemble: EnsembleSource, inputs: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Result:
        """`execute_ensemble` for a test that is no coroutine."""
        return asyncio.run(self.execute_ensemble(ensemble, inputs, **more))

    async def call(self, uri: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> ToolResult:
        """One call as the operator, as `Runtime.call` makes it."""
        address = ToolUri.parse(uri)
        named = named_tools(Library(self.project, self._ensembles))
        if address.server:
            named.setdefault(address.server, set()).add(address.name)

        async def act(runtime: Runtime) -> ToolResult:
            return await runtime.call(address, arguments, **more)

        return await self._with(act, named)

    def mock(self, key: str, answer: Any) -> None:
        """Mock one more tool, or another answer for one."""
        self.mocks[key] = answer

    def mock_operation(self, step: str, answer: Any) -> None:
        """Mock a step by its name, whatever its operation; its inputs are what the mock is given."""
        self._stand_ins[step] = None
        self.mocks[f"{STEPS}:{step}"] = answer

    def mock_ai(self, answers: Any) -> None:
        """What models answer from here on, as `mocks["ai"]`."""
        self.models = scripted(answers, self.project)

    def add_ensemble(self, ensemble: EnsembleSource) -> None:
        """One more ensemble, beside those of the project."""
        self._ensembles = (*self._ensembles, ensemble)

    def notify(self, event: Event) -> None:
        """Note what is told to observers."""
        self.events.append(event)

    def clear(self) -> None:
        """Forget all calls and all state; mocks stay."""
        self.results.clear()
        self.calls.clear()
        self.events.clear()
        self.audit = MemoryAudit()
        self._state = MemoryState()

    async def _with(self, act: Callable[[Runtime], Awaitable[T]], named: Named) -> T:
        clock = self._parts.get("clock")
        set_up = stage(self.project, self.mocks, named=named, strict=self.strict, clock=clock)
        audit = MemoryAudit()
        runtime = Runtime(
            set_up.project,
            transports=set_up.transports,
            ensembles=self._ensembles,
            observers=(*self._observers, self),
            audit=audit,
            state=self._state,
            models=self.models,
            guards=(self._guard, *self._parts.get("guards", ())),
            **{name: part for name, part in self._parts.items() if name != "guards"},
        )
        try:
            async with runtime:
                await set_up.pin(runtime)
                return await act(runtime)
        finally:
            self.audit.records += audit.records
            self.mocks.check()

    async def _guard(self, call: GateCall, inner: Next) -> Up:
        """Note every call, and keep inside what may not leave."""
        outcome, spent = "failed", {}
        try:
            answer = await (self._kept_inside(call) if self._leaves(call.call.uri) else inner(call))
            outcome = "refused" if isinstance(answer, Refusal) else "error" if answer.is_error else "ok"
            spent = _spent(answer) if str(call.call.uri).startswith(_MODELS) else {}
            return answer
        finally:
            made = call.call
            arguments = dict(made.arguments.value)
            self.calls.append(
                Call(
                    uri=made.uri,
                    arguments=arguments,
                    label=call.label,
                    step=made.context.step,
                    outcome=outcome,
                    **spent,
                )
            )

    def _leaves(self, uri: ToolUri) -> bool:
        inside = str(uri).startswith(_INSIDE) or uri in map(model_uri, self.models)
        return self.strict and not inside

    async def _kept_inside(self, call: GateCall) -> Up:
        uri = call.call.uri
        error = MockError(
            f"{uri} was called, and nothing may leave this process.", hint="Test without strict."
        )
        self.mocks.trouble(error)
        return call.refuse("denied", error.message, rule="strict", place="TestConductor", hint=error.hint)


def read_mocks(mocks: Mapping[str, Any]) -> Mocks:
    """Mocks as `create` takes them. Raises MockError for others."""
    for key in mocks:
        if key not in ("tools", "definitions", "replay", "ai", "steps"):
            hint = "Write tools, steps, definitions, replay or ai."
            raise MockError(f"There are no mocks of {key!r}.", hint=hint)
    traffic = read_traffic(Path(mocks["replay"])) if "replay" in mocks else Traffic({}, {})
    steps = {f"{STEPS}:{step}": answer for step, answer in (mocks.get("steps") or {}).items()}
    written = {**steps, **(mocks.get("tools") or {})}
    return Mocks(
        {**written, **_beside(replayed(traffic), written)},
        definitions={**traffic.definitions, **(mocks.get("definitions") or {})},
    )


def _beside(found: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in written}


def _spent(answer: Any) -> dict[str, Any]:
    """Tokens and cost, as the reply of a model's turn tells them."""
    told = {} if isinstance(answer, Refusal) else answer.reply.structured
    if not isinstance(told, dict) or not isinstance(told.get("usage"), dict):
        return {}
    return {"tokens": told["usage"].get("totalTokens", 0), "cost": told.get("cost")}


def scripted(answers: Any, project: Project) -> dict[str, Model]:
    """The models that answer in a test: by provider, or one for all providers that the project can name."""
    match answers:
        case None:
            return {}
        case Mapping():
            return {provider: _model(its) for provider, its in answers.items()}
        case _:
            model = _model(answers)
            return dict.fromkeys((*USUAL, *project.providers), model)


def _model(answers: Any) -> Model:
    return answers if hasattr(answers, "turn") else ScriptedModel(answers)
