"""`luthier audit`: what was decided, intended and answered, from the project's audit log."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project

app = typer.Typer(help="The audit log.", no_args_is_help=True, rich_markup_mode=None)


@app.command("tail")
@command
def tail(
    context: typer.Context,
    number: Annotated[int, typer.Option("-n", help="How many records.", min=1)] = 20,
    json: JsonOption = False,
) -> int:
    """Show the newest records, oldest first; a broken chain or a torn line is reported."""
    import sys

    import msgspec

    from luthier.cli.render import echo, paint, show_faults, show_table, to_json
    from luthier.govern import tail as read_tail

    project = found_project(context)
    log = read_tail(project.root / ".luthier" / "audit", number)
    records = [msgspec.to_builtins(record) for record in log.records]
    if json:
        faults = [msgspec.to_builtins(fault) for fault in log.faults]
        echo(to_json({"records": records, "faults": faults, "torn": log.torn}))
    else:
        show_table(("time", "record", "principal", "tool", "says"), [_row(record) for record in records])
    show_faults(log.faults)
    for segment in log.torn:
        echo(f"{paint('note', 'yellow')}: the last line of {segment} was not finished", sys.stderr)
    return FAILED if log.faults else OK


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    says = record.get("verdict") or record.get("outcome") or record.get("reason") or ""
    return (
        str(record.get("at", "")),
        str(record.get("kind", "")),
        " > ".join(record.get("principals", [])),
        str(record.get("uri", "")),
        str(says),
    )
