"""`luthier servers import` and `approve`: entries of other hosts are kept at once, and used when approved.

Importing reads one file and edits one. Nothing is started, resolved or fetched by either command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import OK, JsonOption, command, found_project
from luthier.cli.registering import DryRunOption, checked_entry, found_entry, store_of

if TYPE_CHECKING:
    from luthier.errors import Fault
    from luthier.spec import Project
    from luthier.spec.hosts import Change, Import


@command
def import_servers(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The host's file, or a server.json.")],
    servers: Annotated[list[str] | None, typer.Argument(help="Only these, by their names there.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace entries that are there.")] = False,
    workspace: Annotated[
        Path | None,
        typer.Option(help="The folder that the host would have open, if its place does not tell."),
    ] = None,
    offer: Annotated[str, typer.Option(help="Which one of a server.json: packages[1], remotes[0].")] = "",
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> int:
    """Take servers over from Claude Desktop, Claude Code, Cursor, VS Code, Gemini or a server.json.

    Each waits for `luthier servers approve ID`; what its host would do without asking, asks here.
    """
    from luthier.errors import SpecError
    from luthier.spec.hosts import import_file, merged

    project = found_project(context)
    found = import_file(
        file,
        root=project.root,
        home=Path.home(),
        workspace=workspace.absolute() if workspace else None,
        only=tuple(servers or ()),
        offer=offer,
    )
    for one in found.servers:
        if one.entry.id in project.broken:
            raise project.broken[one.entry.id]  # what is there is not known, so it is not replaced
    changes = merged(project.servers, found.servers, replace=replace)
    warnings = {change.server.entry.id: _warnings(project, change) for change in changes}
    faults = [fault for each in warnings.values() for fault in each if not fault.warning]
    if faults:
        raise SpecError(faults)
    if not dry_run:
        _write(project, changes)
    if json:
        _show_json(found, changes, warnings, dry_run=dry_run)
    else:
        _show(found, changes, warnings, dry_run=dry_run)
    return OK


@command
def approve(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="A server's id.")],
    seen: Annotated[
        str, typer.Option("--hash", help="Only if the entry still has this hash, as it was shown.")
    ] = "",
    json: JsonOption = False,
) -> int:
    """Approve an imported server: what it runs or reaches is shown, and its tools can be used from now on."""
    from luthier.cli.render import echo, to_json
    from luthier.cli.showing import exposed, show_exposed
    from luthier.cli.stopping import run_async
    from luthier.errors import SpecError
    from luthier.runtime import Runtime
    from luthier.spec import launch_faults

    project = found_project(context)
    entry = found_entry(project, server)
    if not entry.approved and (barred := launch_faults(entry, project)):
        raise SpecError(barred)
    store = store_of(project)

    async def work() -> None:
        runtime = Runtime.open(project)  # not entered: that would insist on the servers that are required
        try:
            await runtime.approve_server(server, seen=seen, store=store, via="cli")
        finally:
            await runtime.close()

    run_async(work())
    if json:
        file = project.file and str(project.file)
        echo(to_json({"approved": exposed(entry), "changed": not entry.approved, "file": file}))
    else:
        said = "it was approved already" if entry.approved else "approved"
        show_exposed(entry, f"{said} at {entry.place()}")
    return OK


def _write(project: Project, changes: tuple[Change, ...]) -> None:
    store = None
    for change in changes:
        if change.deed in ("added", "replaced"):
            store = store or store_of(project)
            if change.there is None:
                store.add(change.server.entry)
            else:
                store.replace(change.server.entry, was=change.there)


def _warnings(project: Project, change: Change) -> list[Fault]:
    """What the reader noted, and why the server could not start as it is."""
    if change.deed in ("kept", "unchanged"):
        return []
    entry = change.server.entry
    faults = checked_entry(project, entry)
    return [*change.server.notes, *faults]


def _show(
    found: Import, changes: tuple[Change, ...], warnings: dict[str, list[Fault]], *, dry_run: bool
) -> None:
    from luthier.cli.render import echo, show_faults
    from luthier.cli.showing import show_exposed

    for change in changes:
        entry = change.server.entry
        if change.there is not None and change.deed in ("kept", "unchanged"):
            same = (
                "it says the same" if change.deed == "unchanged" else "--replace takes the one of this file"
            )
            echo(f"{entry.id} (left as it is at {change.there.place()}; {same})")
            continue
        show_exposed(entry, f"would be {change.deed}" if dry_run else f"{change.deed}; waits for approval")
        echo(f"  approve  luthier servers approve {entry.id} --hash {_hash(change)}")
    if not changes:
        echo("there are no servers in it")
    show_faults([*found.notes, *(fault for each in warnings.values() for fault in each)])


def _show_json(
    found: Import, changes: tuple[Change, ...], warnings: dict[str, list[Fault]], *, dry_run: bool
) -> None:
    import msgspec

    from luthier.cli.render import echo, to_json
    from luthier.cli.showing import described, exposed

    def told(change: Change) -> dict[str, Any]:
        entry = change.server.entry
        faults = [msgspec.to_builtins(fault) for fault in warnings[entry.id]]
        return {
            "id": entry.id,
            "named": change.server.written,
            "deed": change.deed,
            "entry": described(entry),
            "exposed": exposed(entry),
            "warnings": faults,
        }

    notes = [msgspec.to_builtins(note) for note in found.notes]
    document = {
        "host": found.host,
        "dry_run": dry_run,
        "servers": list(map(told, changes)),
        "warnings": notes,
    }
    echo(to_json(document))


def _hash(change: Change) -> str:
    from luthier.spec.hosts import digest

    return digest(change.server.entry)
