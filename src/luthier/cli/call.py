"""`luthier call`: one governed tool call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project, start_logging

if TYPE_CHECKING:
    from luthier.tools import ToolResult


@command
def call(
    context: typer.Context,
    uri: Annotated[str, typer.Argument(help="mcp://server/tool, builtin://name or custom://name")],
    argument: Annotated[
        list[str] | None,
        typer.Option("-a", "--arg", metavar="KEY=VALUE", help="One argument; JSON if it parses, else text."),
    ] = None,
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="All arguments as one JSON object.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Call one tool through the gate and print what it answers."""
    from luthier.cli.asking import asker
    from luthier.cli.inputs import read_arguments
    from luthier.cli.render import echo, paint, show_value, to_json
    from luthier.cli.stopping import run_async
    from luthier.errors import Fault, InputError
    from luthier.runtime import Runtime
    from luthier.uri import ToolUri

    log = start_logging(context)
    project = found_project(context)
    arguments = read_arguments(argument or [], args)
    try:
        address = ToolUri.parse(uri)
    except ValueError as error:
        raise InputError([Fault(str(error))]) from None

    async def work() -> ToolResult:
        async with Runtime.open(project, observers=log, approve=asker()) as runtime:
            return await runtime.call(address, arguments)

    result = run_async(work())
    if json:
        echo(to_json(result.to_json()))
    else:
        show_value(result.content)
    for note in result.reply.notes:
        echo(f"{paint('note', 'yellow')}: {note}", sys.stderr)
    return FAILED if result.is_error else OK
