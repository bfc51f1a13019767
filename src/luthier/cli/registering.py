"""`luthier servers add` and `remove`: the operator's own hand on the project file, checked before saving."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from luthier.connect import ServerStore
    from luthier.errors import Fault
    from luthier.spec import Project, ServerEntry

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check and show, and write nothing.")]

_Texts = list[str] | None


@command
def add(  # noqa: PLR0913, PLR0917  (the options of a command)
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="Its id: letters, digits, _ and -.")],
    run: Annotated[str | None, typer.Option("--command", help="What starts it.")] = None,
    arg: Annotated[_Texts, typer.Option(help="An argument of the command; repeat it.")] = None,
    env: Annotated[_Texts, typer.Option(help="NAME=value for the process; repeat it.")] = None,
    inherit_env: Annotated[_Texts, typer.Option(help="A name that it inherits; repeat it.")] = None,
    cwd: Annotated[str | None, typer.Option(help="The folder that it runs in.")] = None,
    profile: Annotated[str | None, typer.Option(help="The launch profile that starts it.")] = None,
    hole: Annotated[_Texts, typer.Option(help="NAME=value for a hole of the profile; repeat it.")] = None,
    url: Annotated[str | None, typer.Option(help="Where it is reached.")] = None,
    header: Annotated[_Texts, typer.Option(help="Name=value for every request; repeat it.")] = None,
    token: Annotated[str | None, typer.Option(help="A bearer token: ${env.NAME}.")] = None,
    transport: Annotated[str | None, typer.Option(help="stdio, http, sse, rest or auto.")] = None,
    description: Annotated[str | None, typer.Option(help="For people.")] = None,
    timeout_ms: Annotated[int | None, typer.Option(help="For connecting.")] = None,
    tool_timeout_ms: Annotated[int | None, typer.Option(help="For one call.")] = None,
    agent: Annotated[_Texts, typer.Option(help="Who may call it; repeat it. Without: everyone.")] = None,
    allow: Annotated[_Texts, typer.Option(help="A tool that there is, or a pattern; repeat it.")] = None,
    deny: Annotated[_Texts, typer.Option(help="A tool that there is not; repeat it.")] = None,
    ask: Annotated[_Texts, typer.Option(help="A tool whose calls ask; repeat it.")] = None,
    required: Annotated[bool, typer.Option("--required", help="Nothing starts without it.")] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> int:
    """Add a server to luthier.yaml; comments and order stay. It is approved: it is your own word."""
    tools = {"allow": allow, "deny": deny, "ask": ask}
    said: dict[str, Any] = {
        "description": description,
        "transport": transport,
        "command": run,
        "args": arg,
        "env": _pairs(env, "--env"),
        "inherit_env": inherit_env,
        "cwd": cwd,
        "launch": {"profile": profile, "values": _pairs(hole, "--hole")} if profile or hole else None,
        "url": url,
        "headers": _pairs(header, "--header"),
        "auth": {"type": "bearer", "token": token} if token is not None else None,
        "timeout_ms": timeout_ms,
        "tool_timeout_ms": tool_timeout_ms,
        "allowed_agents": agent,
        "tools": {key: names for key, names in tools.items() if names},
        "required": required,
    }
    given = {
        key: value for key, value in said.items() if value is not None and value is not False and value != {}
    }
    return _add(found_project(context), server, given, dry_run=dry_run, json=json)


def _add(project: Project, server: str, said: dict[str, Any], *, dry_run: bool, json: bool) -> int:
    from luthier.cli.render import echo, show_faults, to_json
    from luthier.cli.showing import described, show_exposed
    from luthier.errors import SpecError
    from luthier.spec import launch_faults
    from luthier.spec.write_servers import read_entry

    entry = read_entry(server, said)
    if server in project.servers:
        message, hint = f"there is a server {server!r} already", "remove it, or choose another id"
        raise SpecError([project.servers[server].origin.fault(message, suggestion=hint)])
    if barred := launch_faults(entry, project):
        raise SpecError(barred)
    faults = checked_entry(project, entry)
    if any(not fault.warning for fault in faults):
        raise SpecError(faults)
    store = store_of(project)
    if not dry_run:
        store.add(entry)
        entry = store.get(server)
    if json:
        file = project.file and str(project.file)
        echo(to_json({"added": described(entry), "dry_run": dry_run, "file": file}))
    else:
        show_exposed(entry, "would be added" if dry_run else f"added at {entry.place()}")
    show_faults(faults)
    return OK


@command
def remove(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="A server's id.")],
    json: JsonOption = False,
) -> int:
    """Remove a server, faulty or not, from where it is registered; in a file all else stays as it is."""
    from luthier.cli.render import echo, to_json

    project = found_project(context)
    faulty = project.broken.get(server)
    place = faulty.faults[0].place if faulty else found_entry(project, server).place()
    store_of(project).remove(server)
    if json:
        echo(to_json({"removed": server, "place": place, "file": project.file and str(project.file)}))
    else:
        echo(f"removed {server}, which stood at {place}")
    return OK


def store_of(project: Project) -> ServerStore:
    """Where the project keeps its servers. Raises InputError where it has neither file nor database."""
    from luthier.errors import Fault, InputError
    from luthier.store import servers_of

    store = servers_of(project, os.environ)
    if store is None:
        message = "there is no luthier.yaml here or above"
        raise InputError([Fault(message, suggestion="make a project: luthier init")])
    return store


def found_entry(project: Project, server: str) -> ServerEntry:
    """The project's entry of that id. Raises NotFoundError with near ids, SpecError for a faulty one."""
    from luthier.errors import NotFoundError
    from luthier.text import near

    entry = project.servers.get(server)
    if entry is None:
        if server in project.broken:
            raise project.broken[server]
        raise NotFoundError("server", server, near=near(server, project.servers), where="in the project")
    return entry


def checked_entry(project: Project, entry: ServerEntry) -> list[Fault]:
    """Faults of the entry as `luthier check` finds them, but that it waits for approval."""
    import msgspec

    from luthier.spec.check_project import check_project

    approved = msgspec.structs.replace(entry, approved=True)
    alone = msgspec.structs.replace(project, servers={entry.id: approved})
    return check_project(alone, os.environ)


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    from luthier.errors import Fault, InputError

    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError([Fault(f"{option} takes NAME=value, not {text!r}")])
        pairs[name] = value
    return pairs
