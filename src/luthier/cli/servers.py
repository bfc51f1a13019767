"""`luthier servers`: the registry, as the project file has it, and a try at what stands behind it.

Only `test` and `login` reach for anything and resolve references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.importing import approve, import_servers
from luthier.cli.login import login
from luthier.cli.options import FAILED, OK, USAGE, JsonOption, command, found_project, start_logging
from luthier.cli.registering import add, found_entry, remove
from luthier.cli.showing import args_of, described, exposed, show_exposed
from luthier.cli.switching import switched, turned_off
from luthier.errors import SchemaError
from luthier.redaction import redact

if TYPE_CHECKING:
    from luthier.connect import ServerReport
    from luthier.errors import WireError
    from luthier.events import Observer
    from luthier.spec import Project, ServerEntry

app = typer.Typer(help="The servers that the project registers.", no_args_is_help=True, rich_markup_mode=None)
app.command("add")(add)
app.command("remove")(remove)
app.command("import")(import_servers)
app.command("approve")(approve)
app.command("login")(login)


@app.command("list")
@command
def list_servers(context: typer.Context, json: JsonOption = False) -> int:
    """List the registered servers."""
    from luthier.cli.render import echo, show_error, show_table, to_json

    project = found_project(context)
    for fault in project.broken.values():
        show_error(fault)
    status = USAGE if project.broken else OK
    off = turned_off(project)
    if json:
        told = [
            described(entry) | {"turned_off": f"server:{entry.id}" in off}
            for entry in project.servers.values()
        ]
        echo(to_json({"servers": told}))
        return status
    rows = [
        (
            entry.id,
            entry.transport,
            _target(entry),
            _callers(entry),
            "turned off" if f"server:{entry.id}" in off else _standing(entry),
        )
        for entry in project.servers.values()
    ]
    show_table(("id", "transport", "reached by", "callers", ""), rows)
    return status


@app.command("show")
@command
def show_server(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="A server's id.")],
    json: JsonOption = False,
) -> int:
    """Show one entry as it is written, references unexpanded and literal secrets hidden."""
    from luthier.cli.render import echo, to_json
    from luthier.text import escape

    project = found_project(context)
    entry = found_entry(project, server)
    facts = described(entry)
    if json:
        echo(to_json(facts if entry.approved else facts | {"exposed": exposed(entry)}))
    else:
        width = max(map(len, facts))
        for key, value in facts.items():
            echo(f"{key:<{width}}  {escape(value) if isinstance(value, str) else to_json(value)}")
        if not entry.approved:
            show_exposed(entry, "waits for approval")
    return OK


@app.command("disable")
@command
def disable(context: typer.Context, server: Annotated[str, typer.Argument(help="A server's id.")]) -> int:
    """Turn a server off, from now on and in every process; calls under way are cut off."""
    return switched(context, f"server:{_known(context, server)}", on=False)


@app.command("enable")
@command
def enable(context: typer.Context, server: Annotated[str, typer.Argument(help="A server's id.")]) -> int:
    """Turn a server on again that was turned off."""
    return switched(context, f"server:{server}", on=True)


def _known(context: typer.Context, server: str) -> str:
    from luthier.errors import NotFoundError
    from luthier.text import near

    project = found_project(context)
    if server not in project.servers:
        raise NotFoundError("server", server, near=near(server, project.servers), where="in the project")
    return server


@app.command("test")
@command
def try_servers(
    context: typer.Context,
    server: Annotated[
        str | None, typer.Argument(help="Only this server, even if it is disabled or turned off.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Connect to each server once and list its tools; says what is wrong and what to do about it."""
    from luthier.cli.render import echo, show_error, show_table, to_json
    from luthier.cli.stopping import run_async
    from luthier.text import escape

    log = start_logging(context)
    project = found_project(context)
    ids = [server] if server else _in_use(project)
    reports = run_async(_tested(project, ids, log))
    if json:
        echo(to_json({"servers": [report.to_json() for report in reports]}))
    else:
        show_table(("id", "", "transport", "protocol", "tools", "time"), map(_row, reports))
        for report in reports:
            for line in report.isolation:
                echo(f"{report.server}: {escape(line)}")
    for report in reports:
        if report.error is not None:
            show_error(_advised(report.error, project))
        for dropped in report.dropped:
            show_error(SchemaError(f"{report.server}: tool '{dropped.name}' was dropped: {dropped.reason}"))
    return OK if all(report.ok for report in reports) else FAILED


def _in_use(project: Project) -> list[str]:
    off = turned_off(project)
    return [id for id, entry in project.servers.items() if not entry.disabled and f"server:{id}" not in off]


async def _tested(project: Project, ids: list[str], log: tuple[Observer, ...]) -> list[ServerReport]:
    import asyncio

    from luthier.runtime import Runtime

    # Not entered: that would insist on the servers that are required.
    runtime = Runtime.open(project, observers=log)
    try:
        return await asyncio.gather(*map(runtime.test_server, ids))
    finally:
        await runtime.close()


def _advised(error: WireError, project: Project) -> WireError:
    """The error with something to do next, where it has nothing of its own."""
    if error.hint:
        return error
    entry = project.servers.get(error.server or "")
    if entry is not None and entry.transport == "stdio" and project.sandbox_of(entry).mode != "off":
        error.hint = (
            "It runs in a sandbox and sees only its interpreter, its script, and what `read` and `write` of "
            f"`sandbox` name: luthier servers show {error.server}"
        )
    else:
        error.hint = f"See what its entry says: luthier servers show {error.server}"
    return error


def _row(report: ServerReport) -> tuple[str, ...]:
    error = report.error
    if error is None:
        said = "ok"
    elif error.phase == "approval":
        said = "waits for approval"
    else:
        status = error.facts().get("status")
        said = f"failed ({error.phase}{f', HTTP {status}' if status else ''})"
    tools = str(len(report.tools)) if report.ok else ""
    return report.server, said, report.transport, report.protocol, tools, f"{report.seconds:.2f} s"


def _standing(entry: ServerEntry) -> str:
    if not entry.approved:
        return "waits for approval"
    return "disabled" if entry.disabled else ""


def _target(entry: ServerEntry) -> str:
    if entry.launch is not None:
        return f"profile {entry.launch.profile}"
    return redact(entry.url) if entry.url else " ".join([entry.command or "", *args_of(entry)])


def _callers(entry: ServerEntry) -> str:
    if entry.allowed_agents is None:
        return "everyone"
    return ", ".join(entry.allowed_agents) or "nobody"
