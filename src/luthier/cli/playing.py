"""What commands that run ensembles share: the run with its progress, and what comes of it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from luthier.cli.options import FAILED, OK, REFUSED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from typer import Context

    from luthier.cli.mocking import Parts
    from luthier.events import Observer
    from luthier.runtime import Runtime
    from luthier.runtime.runs import RunHandle
    from luthier.workflows import Run


def played(
    parts: Parts,
    begin: Callable[[Runtime], Awaitable[RunHandle]],
    *,
    log: tuple[Observer, ...],
    quiet: bool,
    durable: bool,
) -> Run:
    """The run, when it has ended. Of a durable one that is interrupted it is said how to go on with it."""
    from luthier.cli.asking import asker
    from luthier.cli.live import progress
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime

    # A script that prints speaks to the person; stdout is for the result.
    with redirect_stdout(sys.stderr), progress(quiet=quiet) as shown:

        async def work() -> Run:
            observers = (*shown.observers, *log)
            async with Runtime.open(
                parts.project, observers=observers, approve=asker(shown.paused), **parts.given
            ) as runtime:
                if parts.prepare is not None:
                    await parts.prepare(runtime)
                handle = await begin(runtime)
                try:
                    return await handle.wait()
                except asyncio.CancelledError:
                    if durable:
                        sys.stderr.write(f"to go on with it: luthier runs resume {handle.id}\n")
                    raise

        return run_async(work())


def gone_on(context: Context, run: str, *, json: bool, quiet: bool) -> int:
    """Go on with a durable run, and print what comes of it; the exit status."""
    from luthier.cli.mocking import Parts
    from luthier.cli.options import found_project, start_logging

    async def begin(runtime: Runtime) -> RunHandle:
        return await runtime.runs.go_on(run)

    log = start_logging(context)
    outcome = played(Parts(found_project(context)), begin, log=log, quiet=quiet, durable=True)
    return shown(outcome, json=json)


def shown(outcome: Run, *, json: bool) -> int:
    """Print what came of it; the exit status."""
    from luthier.cli.render import echo, paint, show_value, to_json
    from luthier.text import escape

    if json:
        echo(to_json(outcome.to_json()))
    elif outcome.success:
        show_value(outcome.output)
    if outcome.success:
        return OK
    if outcome.suspended:
        _show_waiting(outcome)
        return REFUSED
    error = outcome.error or {}
    step = f" at step {error['step']!r}" if error.get("step") else ""
    kind = f" [{error['kind']}]" if error.get("kind") else ""
    message = escape(str(error.get("message", "it failed")))
    echo(f"{paint('error', 'bold red')}: {outcome.ensemble} failed{step}{kind}: {message}", sys.stderr)
    if error.get("hint"):
        echo(f"  {escape(str(error['hint']))}", sys.stderr)
    return REFUSED if outcome.refused else FAILED


def _show_waiting(outcome: Run) -> None:
    """What a suspended run waits for, and the commands to decide and to go on with it."""
    from luthier.cli.render import echo, paint
    from luthier.text import one_line

    lines = [f"{paint('suspended', 'yellow')}: {outcome.ensemble} waits for somebody to decide"]
    for one in outcome.suspended:
        lines.append(f"  {one_line(one.step)}: {one_line(one.prompt)}")
        lines += [f"    luthier approvals approve {request}   (show, deny)" for request in one.requests]
    lines.append(f"then go on with it: luthier runs resume {outcome.id}")
    echo("\n".join(lines), sys.stderr)
