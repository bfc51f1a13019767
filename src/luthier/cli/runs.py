"""`luthier runs`: the runs of the project, how each stands, and what happened in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.runtime import Runtime
    from luthier.workflows import Entry, RunRow

app = typer.Typer(help="Runs of ensembles.", no_args_is_help=True, rich_markup_mode=None)

Status = Literal["running", "suspended", "ok", "failed", "cancelled"]
IdArgument = Annotated[str, typer.Argument(help="A run's id, as `list` shows it.")]


@app.command("list")
@command
def list_runs(
    context: typer.Context,
    number: Annotated[int, typer.Option("-n", help="How many runs.", min=1)] = 20,
    status: Annotated[Status | None, typer.Option(help="Only those that stand so.")] = None,
    ensemble: Annotated[str | None, typer.Option(help="Only runs of this ensemble.")] = None,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Only runs older than this one.")] = None,
    nested: Annotated[bool, typer.Option("--all", help="Those inside of other runs too.")] = False,
    json: JsonOption = False,
) -> int:
    """List runs, the newest first."""
    import msgspec

    from luthier.cli.render import echo, show_table, to_json

    async def listed(runtime: Runtime) -> list[tuple[RunRow, dict[str, bool]]]:
        rows = runtime.runs.list(limit=number, status=status, ensemble=ensemble, before=before, nested=nested)
        return [(row, _more(runtime, row)) for row in rows]

    rows = _asked(context, listed)
    if json:
        listed_rows = [{**msgspec.to_builtins(row), **more} for row, more in rows]
        echo(to_json({"runs": listed_rows}))
        return OK
    shown = [
        (
            row.id,
            next((word for word, holds in more.items() if holds), row.status),
            row.ensemble,
            _time(row.started_at),
            row.principal,
        )
        for row, more in rows
    ]
    show_table(("id", "", "ensemble", "started", "by"), shown)
    return OK


@app.command("show")
@command
def show_run(context: typer.Context, run: IdArgument, json: JsonOption = False) -> int:
    """Show how a run stands, and what happened in it; with --json the values too."""
    import msgspec

    from luthier.cli.render import echo, show_table, to_json
    from luthier.workflows import encode

    async def found(runtime: Runtime) -> tuple[RunRow, dict[str, bool], tuple[Entry, ...]]:
        row = runtime.runs.get(run)
        return row, _more(runtime, row), runtime.runs.record(run)

    row, more, record = _asked(context, found)
    facts: dict[str, Any] = {**msgspec.to_builtins(row), **more}
    if json:
        entries = [msgspec.json.decode(encode(entry)) for entry in record]
        echo(to_json({**facts, "record": entries}))
        return OK
    facts |= {name: _time(facts[name]) for name in ("started_at", "ended_at", "beat_at")}
    waiting = [f"{one.step} ({one.what})" for one in row.waiting]
    show_table(
        ("", ""),
        [(name, str(said)) for name, said in {**facts, "waiting": ", ".join(waiting)}.items() if said],
    )
    show_table(("", "time", "what", "step", "says"), [_line(entry) for entry in record])
    return OK


@app.command("resume")
@command
def resume(
    context: typer.Context,
    run: IdArgument,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> int:
    """Go on with a durable run that was interrupted or suspended, and print its outputs."""
    from luthier.cli.playing import gone_on

    return gone_on(context, run, json=json, quiet=quiet)


@app.command("cancel")
@command
def cancel(context: typer.Context, run: IdArgument, json: JsonOption = False) -> int:
    """End a durable run, in whatever process it goes on, or in none; its `finally` steps run."""
    import msgspec

    from luthier.cli.render import echo, to_json

    row: RunRow = _asked(context, lambda runtime: runtime.runs.cancel(run))
    echo(to_json(msgspec.to_builtins(row)) if json else f"{row.status}: {row.ensemble} ({row.id})")
    return OK if row.ended_at is not None else FAILED


@app.command("prune")
@command
def prune(
    context: typer.Context,
    before: Annotated[
        str,
        typer.Option("--before", metavar="WHEN", help="A date (UTC), or how long ago: 90m, 12h, 30d."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which runs would go.")] = False,
    json: JsonOption = False,
) -> int:
    """Take away runs that ended before then, with those inside, their records and their requests."""
    import msgspec

    from luthier.cli.moments import moment
    from luthier.cli.render import echo, show_table, to_json

    at = moment(before, datetime.now(UTC))
    rows = _asked(context, lambda runtime: runtime.runs.prune(at, dry_run=dry_run))
    if json:
        echo(to_json({"pruned": [msgspec.to_builtins(row) for row in rows], "dry_run": dry_run}))
        return OK
    shown = [(row.id, row.status, row.ensemble, _time(row.ended_at)) for row in rows]
    show_table(("id", "", "ensemble", "ended"), shown)
    return OK


def _more(runtime: Runtime, row: RunRow) -> dict[str, bool]:
    """What the row alone does not tell: whether nobody drives it, and whether what it waits for is void."""
    return {"interrupted": runtime.runs.interrupted(row), "expired": runtime.runs.expired(row)}


def _line(entry: Entry) -> tuple[str, ...]:
    step = f"{entry.step} ({entry.attempt})" if entry.attempt > 1 else entry.step
    return str(entry.seq), _time(entry.at), entry.kind, step, _says(entry.data)


def _says(data: Any) -> str:
    """What tells most of an entry; no values."""
    error = getattr(data, "error", None)
    if error is not None:
        return f"{error.kind}: {error.message}"
    return next((str(told) for name in _TELLING if (told := getattr(data, name, ""))), "")


_TELLING = ("end", "decision", "uri", "outcome", "case", "ensemble", "owner", "what")


def _time(at: float | None) -> str:
    return "" if not at else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _asked(context: typer.Context, question: Callable[[Runtime], Awaitable[Any]]) -> Any:
    """The answer to one question about the project's runs. No server is started."""
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime

    project = found_project(context)

    async def work() -> Any:
        runtime = Runtime.open(project)
        try:
            return await question(runtime)
        finally:
            await runtime.close()

    return run_async(work())
