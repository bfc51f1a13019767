"""`luthier agents`: turning callers off and on."""

from __future__ import annotations

from typing import Annotated

import typer

from luthier.cli.options import command
from luthier.cli.switching import switched

app = typer.Typer(help="Who calls.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="An agent's name, ensemble:NAME or client:ID.")
]


@app.command("disable")
@command
def disable(context: typer.Context, name: NameArgument) -> int:
    """Refuse all that it calls, from now on and in every process; calls under way are cut off."""
    return switched(context, f"agent:{name}", on=False)


@app.command("enable")
@command
def enable(context: typer.Context, name: NameArgument) -> int:
    """Let it call again what its grants allow."""
    return switched(context, f"agent:{name}", on=True)
