"""`luthier run`: one ensemble, by name or file."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import FAILED, OK, REFUSED, JsonOption, command, found_project, start_logging

if TYPE_CHECKING:
    from luthier.cli.mocking import Parts
    from luthier.cli.options import Settings
    from luthier.errors import Fault
    from luthier.events import Observer
    from luthier.spec import Ensemble
    from luthier.workflows import Run


@command
def run(  # noqa: PLR0913, PLR0917  (each is an option of the command)
    context: typer.Context,
    ensemble: Annotated[str, typer.Argument(help="An ensemble's name, or its file.")],
    given: Annotated[
        list[str] | None,
        typer.Option("-i", "--input", metavar="KEY=VALUE", help="One input; KEY=@FILE reads a file."),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(metavar="FILE", help="All inputs, as a JSON or YAML mapping; - is stdin.")
    ] = None,
    mock: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVER:TOOL=VALUE", help="Answer calls of a tool; JSON or text; =@FILE reads one."
        ),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer calls of servers from a recording.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what servers are asked and say, for --replay.")
    ] = None,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> int:
    """Run an ensemble and print its outputs."""
    from luthier.cli.inputs import read_inputs
    from luthier.cli.mocking import Doubles, doubled
    from luthier.errors import SpecError
    from luthier.runtime import Library

    log = start_logging(context)
    try:
        project = found_project(context)
        found = Library(project).get(ensemble)
    except SpecError as error:
        raise SpecError(_all_faults(context, ensemble) or error.faults) from None
    values = read_inputs(found, given or [], inputs)
    with doubled(project, found, Doubles(tuple(mock or ()), replay, record)) as parts:
        outcome = _perform(parts, found, values, log=log, quiet=quiet)
    _show(outcome, json=json)
    if outcome.success:
        return OK
    return REFUSED if outcome.refused else FAILED


def _all_faults(context: typer.Context, ensemble: str) -> list[Fault]:
    """The faults of the project and of the ensemble together, whichever of them was found first."""
    from luthier.spec import check_paths, find_project

    chosen: Settings = context.obj
    project = chosen.project or find_project(Path.cwd())
    root = project.resolve().parent if project is not None else Path.cwd()
    named = [Path(ensemble), *(root / "ensembles" / f"{ensemble}.{kind}" for kind in ("yaml", "yml"))]
    files = [path for path in (project, *named) if path is not None and path.is_file()]
    return [fault for fault in check_paths(files) if not fault.warning] if files else []


def _perform(
    parts: Parts,
    ensemble: Ensemble,
    values: dict[str, Any],
    *,
    log: tuple[Observer, ...],
    quiet: bool,
) -> Run:
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
                return await runtime.run(ensemble, values)

        return run_async(work())


def _show(outcome: Run, *, json: bool) -> None:
    from luthier.cli.render import echo, paint, show_value, to_json
    from luthier.text import escape

    if json:
        echo(to_json(outcome.to_json()))
    elif outcome.success:
        show_value(outcome.output)
    if not outcome.success:
        error = outcome.error or {}
        step = f" at step {error['step']!r}" if error.get("step") else ""
        kind = f" [{error['kind']}]" if error.get("kind") else ""
        message = escape(str(error.get("message", "it failed")))
        echo(f"{paint('error', 'bold red')}: {outcome.ensemble} failed{step}{kind}: {message}", sys.stderr)
