"""`luthier run`: one ensemble, by name or file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import JsonOption, command, found_project, start_logging

if TYPE_CHECKING:
    from luthier.cli.options import Settings
    from luthier.errors import Fault
    from luthier.runtime import Runtime
    from luthier.runtime.runs import RunHandle


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
    durable: Annotated[
        bool,
        typer.Option("--durable", help="Write it down as it goes, so that `runs resume` can go on with it."),
    ] = False,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> int:
    """Run an ensemble and print its outputs."""
    from luthier.cli.inputs import read_inputs, undeclared
    from luthier.cli.mocking import Doubles, doubled
    from luthier.cli.playing import played, shown
    from luthier.cli.render import show_faults
    from luthier.errors import Fault, InputError, SpecError
    from luthier.runtime import Library

    log = start_logging(context)
    try:
        project = found_project(context)
        found = Library(project).get(ensemble)
    except SpecError as error:
        raise SpecError(_all_faults(context, ensemble) or error.faults) from None
    values = read_inputs(found, given or [], inputs)
    show_faults(undeclared(found, values))
    if durable and (mock or replay is not None):
        raise InputError([Fault("--durable is for runs with real servers: leave out --mock and --replay")])

    async def begin(runtime: Runtime) -> RunHandle:
        return runtime.start(found, values, durable=durable)

    with doubled(project, found, Doubles(tuple(mock or ()), replay, record)) as parts:
        outcome = played(parts, begin, log=log, quiet=quiet, durable=durable)
    return shown(outcome, json=json)


def _all_faults(context: typer.Context, ensemble: str) -> list[Fault]:
    """The faults of the project and of the ensemble together, whichever of them was found first."""
    from luthier.spec import check_paths, find_project
    from luthier.spec.places import real

    chosen: Settings = context.obj
    project = chosen.project or find_project(Path.cwd())
    root = real(project).parent if project is not None else Path.cwd()
    named = [Path(ensemble), *(root / "ensembles" / f"{ensemble}.{kind}" for kind in ("yaml", "yml"))]
    files = [path for path in (project, *named) if path is not None and path.is_file()]
    return [fault for fault in check_paths(files) if not fault.warning] if files else []
