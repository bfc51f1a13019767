"""`luthier tools`: what the servers offer, as they say it now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import OK, JsonOption, command, found_project, start_logging, status_of
from luthier.cli.pins import approve_tools, diff_tools, finding_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.errors import LuthierError
    from luthier.govern import Review
    from luthier.runtime import Listing
    from luthier.runtime.toolset import Dropped
    from luthier.text import Finding
    from luthier.tools import Tool
    from luthier.uri import ToolUri

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
    from luthier.govern.findings import found_in
    from luthier.runtime import Runtime

    log = start_logging(context)
    project = found_project(context)

    async def work() -> tuple[Listing, list[Review]]:
        async with Runtime.open(project, observers=log) as runtime:
            listing = await runtime.tools.load(*([server] if server else []))
            return listing, [await runtime.review_tools(id, fresh=False) for id in listing.servers]

    listing, reviews = run_async(work())
    held = {tool.tool: tool.why for review in reviews for tool in review.pending if tool.tool}
    found = found_in([*listing.tools, *held])
    if json:
        echo(to_json(_document(listing, held, found)))
    else:
        tools = [*((tool, "") for tool in listing.tools), *held.items()]
        show_table(("tool", "description", ""), [_row(tool, why, found[tool.uri]) for tool, why in tools])
    for error in listing.failed.values():
        show_error(error)
    for dropped in listing.dropped:
        show_error(_dropped_error(dropped))
    for review in reviews:
        if changed := len(review.pending):
            id = review.server
            echo(f"{id}: {changed} of its tools changed: luthier tools diff {id}", sys.stderr)
    return OK if listing.servers else status_of(listing.failed.values())


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
    from luthier.govern.findings import found_in
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
    findings = found_in([tool])[tool.uri]
    if json:
        echo(to_json(described(tool, findings)))
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
    if findings:
        echo("\n".join(("\nfindings:", *finding_lines(findings))))
    return OK


def described(tool: Tool, findings: Iterable[Finding] = (), why: str = "") -> dict[str, Any]:
    """A tool as JSON: its address, the name a model sees, its definition as it may be shown, what was found.

    `why` says what it is held back for, if it is.
    """
    from msgspec import to_builtins

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
        "held": why,
        "findings": [to_builtins(finding) for finding in findings],
    }


def _row(tool: Tool, why: str, findings: Iterable[Finding]) -> tuple[str, str, str]:
    from luthier.text import one_line

    held = f"held back: {why}" if why else ""
    rules = " ".join(sorted({finding.rule for finding in findings}))
    return str(tool.uri), one_line(tool.description), "; ".join(filter(None, (held, rules)))


def _document(
    listing: Listing, held: Mapping[Tool, str], found: Mapping[ToolUri, tuple[Finding, ...]]
) -> dict[str, Any]:
    return {
        "tools": [described(tool, found[tool.uri]) for tool in listing.tools],
        "held": [described(tool, found[tool.uri], why) for tool, why in held.items()],
        "dropped": [{"server": d.server, "name": d.name, "reason": d.reason} for d in listing.dropped],
        "failed": {server: str(error) for server, error in listing.failed.items()},
    }


def _dropped_error(dropped: Dropped) -> LuthierError:
    from luthier.errors import SchemaError

    return SchemaError(f"{dropped.server}: the tool '{dropped.name}' cannot be used: {dropped.reason}")
