"""`luthier audit`: what was decided, intended and answered, and whether the log of it is whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from luthier.govern import AuditPlaces, Trail
    from luthier.spec import Project

app = typer.Typer(help="The audit log.", no_args_is_help=True, rich_markup_mode=None)


@app.command("tail")
@command
def tail(
    context: typer.Context,
    number: Annotated[int, typer.Option("-n", help="How many records.", min=1)] = 20,
    json: JsonOption = False,
) -> int:
    """Show the newest records, oldest first; a broken chain or a torn line is reported."""
    import msgspec

    from luthier.cli.render import echo, show_table, to_json
    from luthier.govern import tail as read_tail

    places = _places(found_project(context))
    log = read_tail(places.segments, places.known_key(), number)
    records = [msgspec.to_builtins(record) for record in log.records]
    if json:
        echo(to_json({"records": records, **_found(log)}))
    else:
        show_table(("time", "record", "principal", "tool", "says"), [_row(record) for record in records])
    return _shown(log, places)


@app.command("verify")
@command
def verify_log(context: typer.Context, json: JsonOption = False) -> int:
    """Check the whole log against its key and its checkpoints; says what was touched, and where."""
    from luthier.cli.render import echo, paint, to_json
    from luthier.govern import verify

    places = _places(found_project(context))
    key = places.known_key()
    log = _unkeyed(places) if key is None else verify(places.segments, key, places.checkpoints)
    counts = {"segments": log.segments, "records": len(log.records), "checkpoints": log.checkpoints}
    if json:
        echo(to_json({**counts, **_found(log)}))
    elif not log.faults:
        echo(", ".join(f"{count} {name}" for name, count in counts.items()) + ": nothing was touched")
    for path in places.beside():
        said = f"{path} is kept with the log: who rewrites one can rewrite the other"
        echo(f"{paint('warning', 'yellow')}: {said} (audit: key_file, checkpoints)", sys.stderr)
    return _shown(log, places)


@app.command("export")
@command
def export(
    context: typer.Context,
    run: Annotated[str | None, typer.Option(help="Only the records of this run.")] = None,
    since: Annotated[str, typer.Option(help="Only records from this time on, as in 2026-07-28T12.")] = "",
) -> int:
    """Print the records as JSON lines, oldest first, for other systems; a broken chain is reported."""
    import msgspec

    from luthier.cli.render import echo
    from luthier.govern import read_audit
    from luthier.text import escape

    places = _places(found_project(context))
    log = read_audit(places.segments, places.known_key())
    calls: set[str] = set()  # of the run: only their verdicts name it
    for record in log.records:
        facts = msgspec.to_builtins(record)
        if run is not None and facts.get("run") == run:
            calls.add(facts["call"])
        if facts["at"] >= since and (run is None or facts.get("call") in calls):
            echo(escape(msgspec.json.encode(record).decode()))
    return _shown(log, places)


def _places(project: Project) -> AuditPlaces:
    import os

    from luthier.runtime.auditing import audit_places

    return audit_places(project, project.environ(os.environ))


def _unkeyed(places: AuditPlaces) -> Trail:
    """What can be said of a log whose key is not here: of an empty one, that it is."""
    import msgspec

    from luthier.errors import Fault
    from luthier.govern import read_audit

    log = read_audit(places.segments, None)
    if not log.segments:
        return log
    missing = Fault("the key of the log is not there, so nothing can be said of it", str(places.key_file))
    return msgspec.structs.replace(log, faults=(*log.faults, missing))


def _found(log: Trail) -> dict[str, Any]:
    import msgspec

    return {
        "faults": [msgspec.to_builtins(fault) for fault in log.faults],
        "torn": log.torn,
        "checked": log.checked,
    }


def _shown(log: Trail, places: AuditPlaces) -> int:
    from luthier.cli.render import echo, paint, show_faults

    show_faults(log.faults)
    note = paint("note", "yellow")
    for segment in log.torn:
        echo(f"{note}: the last line of {segment} was not finished", sys.stderr)
    if log.records and not log.checked:
        echo(f"{note}: nothing was checked, the key is not in {places.key_file}", sys.stderr)
    return FAILED if log.faults else OK


_SAYS = ("verdict", "outcome", "decision", "to", "pins", "reason", "rule")
"""What tells most of a record, by its kind."""


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    says = next((record[key] for key in _SAYS if record.get(key)), "")
    return (
        str(record.get("at", "")),
        str(record.get("kind", "")),
        " > ".join(record.get("principals", [])),
        str(record.get("uri") or record.get("what") or record.get("type") or ""),
        str(says),
    )
