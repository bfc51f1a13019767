"""`luthier audit`: what was decided, intended and answered, from the project's audit log."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project

app = typer.Typer(help="The audit log.", no_args_is_help=True)


@app.command("tail")
@command
def tail(
    context: typer.Context,
    number: Annotated[int, typer.Option("-n", help="How many records.", min=1)] = 20,
    json: JsonOption = False,
) -> int:
    """Show the newest records, oldest first; a broken chain or a torn line is reported."""
    import sys

    from luthier.cli.render import echo, paint, show_table, to_json
    from luthier.govern.audit import read_audit

    project = found_project(context)
    log = read_audit(project.root / ".luthier" / "audit")
    records = log.records[-number:]
    if json:
        echo(to_json({"records": records, "faults": log.faults}))
    else:
        show_table(("time", "record", "principal", "tool", "says"), [_row(record) for record in records])
    for fault in log.faults:
        echo(f"{paint('fault', 'bold red')}: {fault}", sys.stderr)
    return FAILED if log.faults else OK


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    says = record.get("verdict") or record.get("outcome") or record.get("reason") or ""
    return (
        str(record.get("at", "")),
        str(record.get("kind", "")),
        " > ".join(record.get("principals", [])),
        str(record.get("tool", "")),
        str(says),
    )
