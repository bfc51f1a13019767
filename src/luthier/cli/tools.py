"""`luthier tools`: what the servers offer, as they say it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project, start_logging
from luthier.cli.pins import approve_tools, diff_tools

if TYPE_CHECKING:
    from luthier.errors import LuthierError
    from luthier.tools import Tool

app = typer.Typer(help="The tools that the servers offer.", no_args_is_help=True, rich_markup_mode=None)
app.command("diff")(diff_tools)
app.command("approve")(approve_tools)


@app.command("list")
@command
def list_tools(
    context: typer.Context,
    server: Annotated[str | None, typer.Argument(help="Only this server's.")] = None,
    json: JsonOption = False,
) -> int:
    """List tools; a server that cannot be reached is reported and the others are shown."""
    from luthier.cli.render import echo, show_error, show_table, to_json
    from luthier.cli.stopping import run_async
    from luthier.runtime import Listing, Runtime
    from luthier.text import one_line

    log = start_logging(context)
    project = found_project(context)

    async def work() -> Listing:
        async with Runtime.open(project, observers=log) as runtime:
            return await runtime.tools.load(*([server] if server else []))

    listing = run_async(work())
    if json:
        echo(to_json(_document(listing)))
    else:
        show_table(
            ("tool", "description"), [(str(tool.uri), one_line(tool.description)) for tool in listing.tools]
        )
    for error in listing.failed.values():
        show_error(error)
    for dropped in listing.dropped:
        show_error(_dropped_error(dropped.name, dropped.reason))
    return FAILED if listing.failed and not listing.tools else OK


@app.command("show")
@command
def show_tool(
    context: typer.Context,
    uri: Annotated[str, typer.Argument(help="A tool's address.")],
    json: JsonOption = False,
) -> int:
    """Show one tool: description, schemas, annotations."""
    from luthier.cli.render import echo, to_json
    from luthier.cli.stopping import run_async
    from luthier.errors import Fault, InputError
    from luthier.runtime import Runtime
    from luthier.text import escape
    from luthier.uri import ToolUri

    log = start_logging(context)
    project = found_project(context)
    try:
        address = ToolUri.parse(uri)
    except ValueError as error:
        raise InputError([Fault(str(error))]) from None

    async def work() -> Tool:
        async with Runtime.open(project, observers=log) as runtime:
            return await runtime.describe(address)

    tool = run_async(work())
    if json:
        echo(to_json(described(tool)))
        return OK
    echo(str(tool.uri))
    if tool.description:
        echo(escape(tool.description))
    for title, value in (
        ("input", tool.input_schema),
        ("output", tool.output_schema),
        ("hints", tool.annotations),
    ):
        if value:
            echo(f"\n{title}:\n{to_json(value)}")
    return OK


def described(tool: Tool) -> dict[str, Any]:
    """A tool as JSON: its address, the name a model sees, and its definition."""
    from luthier.tools.naming import model_name

    return {
        "uri": str(tool.uri),
        "name": tool.name,
        "model_name": model_name(tool.uri),
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
    }


def _document(listing: Any) -> dict[str, Any]:
    return {
        "tools": [described(tool) for tool in listing.tools],
        "dropped": [{"server": d.server, "name": d.name, "reason": d.reason} for d in listing.dropped],
        "failed": {server: str(error) for server, error in listing.failed.items()},
    }


def _dropped_error(name: str, reason: str) -> LuthierError:
    from luthier.errors import SchemaError

    return SchemaError(f"the definition of tool {name!r} cannot be used: {reason}")
