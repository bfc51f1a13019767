"""`code`: a function of the project's own `scripts/`, in a daemon thread whether it is sync or async."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from luthier.errors import StepError
from luthier.redaction import logger
from luthier.taint import Labelled, join
from luthier.tools.threads import tried
from luthier.workflows.operations.jsonlike import copied, own_copy
from luthier.workflows.operations.scripts import Scripts
from luthier.workflows.record import NULL
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Mapping
    from pathlib import Path

    from luthier.spec import CodeConfig
    from luthier.workflows.operations.attempt import Attempt

ABANDONED = "Its thread cannot be stopped and was left behind; what it still does is ignored."

_scripts = Scripts()
_log = logger("luthier.scripts")


class ScriptContext:
    """What a script is given. `input` is its own copy, `run` is `{id, ensemble, started}`."""

    __slots__ = ("input", "log", "run", "set", "state")

    def __init__(
        self, given: dict[str, Any], state: Mapping[str, Any], run: Mapping[str, Any], log: logging.Logger
    ) -> None:
        self.input = given
        self.state = state
        self.run = run
        self.log = log
        self.set: dict[str, Any] = {}

    def set_state(self, fields: Mapping[str, Any]) -> None:
        """Set fields of the run's state when the step has ended well; those that it does not list are not."""
        self.set.update(fields)


class _Performance:
    """A script in a thread, an async one on a loop of its own: what never lets go holds up only itself."""

    def __init__(self, path: Path, context: ScriptContext) -> None:
        self._path = path
        self._context = context
        self._task: asyncio.Task[Any] | None = None
        self._told = False

    def __call__(self) -> Any:
        """What the function returns, as JSON values of our own."""
        result = _scripts.load(self._path)(self._context)
        return copied(asyncio.run(self._awaited(result)) if inspect.isawaitable(result) else result)

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        self._task = asyncio.current_task()
        if self._told and self._task is not None:
            self._task.cancel()
        return await result

    def stop(self) -> bool:
        """Tell it to stop; False where it is sync code, which nobody can tell anything."""
        self._told = True
        if self._task is None:
            return inspect.iscoroutinefunction(_scripts.cached(self._path))  # it will see when it begins
        with suppress(RuntimeError):  # its loop has ended meanwhile
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        return True


async def perform(attempt: Attempt, config: CodeConfig) -> Outcome:
    """Call the script's function with the step's inputs; what it returns is the output. Raises StepError."""
    given = attempt.given()
    try:
        path = _scripts.find(attempt.services.project.root, config.script)
    except ValueError as error:
        raise StepError("code", str(error)) from error
    attempt.harmless = False
    context = ScriptContext(
        own_copy(given.value),
        MappingProxyType(_used(attempt)),
        MappingProxyType(attempt.scope.values["run"].value),
        _log.getChild(path.stem),
    )
    await attempt.committed()
    result = await _called(attempt, path, config.script, context)
    return Outcome(
        output=Labelled(result, attempt.label), label=attempt.label, state=_written(attempt, context)
    )


def _used(attempt: Attempt) -> dict[str, Any]:
    """What the step says that it uses of the state: copies, which it has then seen."""
    wanted = attempt.step.state.use if attempt.step.state is not None else ()
    state = attempt.scope.values["state"]
    seen = {field: state.member(field, state.value.get(field)) for field in wanted}
    attempt.label = join(one.whole for one in seen.values()).join(attempt.label)
    return {field: own_copy(one.value) for field, one in seen.items()}


def _written(attempt: Attempt, context: ScriptContext) -> Labelled[Any]:
    allowed = attempt.step.state.writes if attempt.step.state is not None else ()
    for field in context.set.keys() - set(allowed):
        _log.warning(
            "step %s set the field %s, which it does not list under state.set", attempt.step.name, field
        )
    kept = {field: value for field, value in context.set.items() if field in allowed}
    return Labelled(copied(kept), attempt.label) if kept else NULL


async def _called(attempt: Attempt, path: Path, script: str, context: ScriptContext) -> Any:
    performance = _Performance(path, context)
    try:
        done = await tried(performance, name="luthier-code")
    except asyncio.CancelledError:
        if not performance.stop():
            attempt.notes.append(ABANDONED)
        raise
    if done.error is not None:
        raise _blamed(done.error, path, script) from done.error
    return done.value


def _blamed(error: BaseException, path: Path, script: str) -> StepError:
    """The exception as the step's error, with the line of the script that it came by."""
    if isinstance(error, StepError):
        return error
    line = error.lineno if isinstance(error, SyntaxError) else _line(error, path)
    place = f"{script}:{line}" if line else script
    facts = {"type": type(error).__name__, "script": script, "line": line}
    said = str(error)
    return StepError("code", f"{type(error).__name__}{f': {said}' if said else ''} ({place})", facts=facts)


def _line(error: BaseException, path: Path) -> int | None:
    """The innermost line of the script itself."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
