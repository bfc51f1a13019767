"""`code`: a function of the project's own `scripts/`, sync in a daemon thread, async on the loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from luthier.errors import StepError
from luthier.taint import Labelled
from luthier.workflows.operations.jsonlike import copied, own_copy
from luthier.workflows.operations.scripts import Scripts
from luthier.workflows.operations.threads import in_thread
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from luthier.spec import CodeConfig
    from luthier.workflows.operations.attempt import Attempt
    from luthier.workflows.operations.scripts import Function

ABANDONED = "Its thread cannot be stopped and was left behind; what it still does is ignored."

_scripts = Scripts()
_log = logging.getLogger("luthier.scripts")


class ScriptContext:
    """What a script is given. `input` is its own copy, `run` is `{id, ensemble, started}`."""

    __slots__ = ("input", "log", "run", "state")

    def __init__(
        self, given: dict[str, Any], state: Mapping[str, Any], run: Mapping[str, Any], log: logging.Logger
    ) -> None:
        self.input = given
        self.state = state
        self.run = run
        self.log = log


class _OnLoop(NamedTuple):
    function: Function


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
        MappingProxyType({}),
        MappingProxyType(attempt.scope.values["run"].value),
        _log.getChild(path.stem),
    )
    result = await _called(attempt, path, config.script, context)
    return Outcome(output=Labelled(copied(result), attempt.label), label=attempt.label)


async def _called(attempt: Attempt, path: Path, script: str, context: ScriptContext) -> Any:
    function = _scripts.cached(path)
    if function is None or not inspect.iscoroutinefunction(function):
        try:
            done = await in_thread(_load_and_call, path, context)
        except asyncio.CancelledError:
            attempt.notes.append(ABANDONED)
            raise
        if done.error is not None:
            raise _blamed(done.error, path, script) from done.error
        result = done.value
        if isinstance(result, _OnLoop):
            function = result.function
        elif not inspect.isawaitable(result):
            return result
        else:
            function = lambda _: result  # noqa: E731  (what a sync function promised)
    try:
        return await function(context)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        raise _blamed(error, path, script) from error


def _load_and_call(path: Path, context: ScriptContext) -> Any:
    """What the function returns; an async one is handed to the loop instead of being called here."""
    function = _scripts.load(path)
    return _OnLoop(function) if inspect.iscoroutinefunction(function) else function(context)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
