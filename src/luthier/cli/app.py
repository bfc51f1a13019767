"""The command tree. Each command is done by the module of its name."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads the annotations when it runs)
from typing import Annotated

import typer

from luthier.cli import (
    agents,
    approvals,
    audit,
    call,
    check,
    doctor,
    init,
    mock,
    run,
    runs,
    schema,
    secrets,
    serve,
    servers,
    tools,
)
from luthier.cli.options import Settings

app = typer.Typer(
    name="luthier",
    help="Looks after the tools that agents and workflows use.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: the same on a terminal and in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from luthier._version import __version__

        typer.echo(f"luthier {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    context: typer.Context,
    project: Annotated[
        Path | None,
        typer.Option(help="The project file; default: luthier.yaml here or in the nearest parent folder."),
    ] = None,
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Log more: -v, -vv.")] = 0,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Looks after the tools that agents and workflows use."""
    context.obj = Settings(project=project, verbose=verbose)


app.command("init")(init.init)
app.command("check")(check.check)
app.command("schema")(schema.schema)
app.command("doctor")(doctor.doctor)
app.command("run")(run.run)
app.command("mock")(mock.mock)
app.command("call")(call.call)
app.command("serve")(serve.serve)
app.add_typer(servers.app, name="servers")
app.add_typer(tools.app, name="tools")
app.add_typer(agents.app, name="agents")
app.add_typer(approvals.app, name="approvals")
app.add_typer(runs.app, name="runs")
app.add_typer(secrets.app, name="secrets")
app.add_typer(audit.app, name="audit")
