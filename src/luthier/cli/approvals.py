"""`luthier approvals`: the calls that wait for a person, and the person's word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from luthier.cli.options import OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.govern import Approvals

    T = TypeVar("T")

app = typer.Typer(help="Calls that wait for a person.", no_args_is_help=True, rich_markup_mode=None)

IdArgument = Annotated[str, typer.Argument(help="A request's id, as `list` shows it.")]


@app.command("list")
@command
def list_requests(context: typer.Context, json: JsonOption = False) -> int:
    """List what waits for a decision, or was approved and has not been called again."""
    import msgspec

    from luthier.cli.render import echo, show_table, to_json

    requests = _asked(context, lambda approvals: approvals.list())
    if json:
        echo(to_json({"requests": [msgspec.to_builtins(request) for request in requests]}))
        return OK
    rows = [
        (
            request.id,
            request.state,
            request.uri,
            " > ".join(request.principals),
            request.reason or request.rule,
        )
        for request in requests
    ]
    show_table(("id", "", "tool", "caller", "because"), rows)
    return OK


@app.command("show")
@command
def show_request(context: typer.Context, request: IdArgument, json: JsonOption = False) -> int:
    """Show one request: the call, who makes it, each argument and where it came from."""
    import msgspec

    from luthier.cli.asking import lines_of
    from luthier.cli.render import echo, to_json

    found = _asked(context, lambda approvals: approvals.get(request))
    echo(to_json(msgspec.to_builtins(found)) if json else "\n".join(lines_of(found)))
    return OK


@app.command("approve")
@command
def approve(context: typer.Context, request: IdArgument, json: JsonOption = False) -> int:
    """Let that one call be made, once."""
    return _decide(context, request, "approve", json=json)


@app.command("deny")
@command
def deny(context: typer.Context, request: IdArgument, json: JsonOption = False) -> int:
    """Have that call refused."""
    return _decide(context, request, "deny", json=json)


def _decide(context: typer.Context, id: str, word: str, *, json: bool) -> int:
    import msgspec

    from luthier.cli.asking import person
    from luthier.cli.render import echo, to_json
    from luthier.text import one_line

    decided = _asked(context, lambda approvals: getattr(approvals, word)(id, via=f"cli, {person()}"))
    if json:
        echo(to_json(msgspec.to_builtins(decided)))
    else:
        echo(f"{decided.state}: {one_line(decided.uri)} ({id})")
    return OK


def _asked(context: typer.Context, question: Callable[[Approvals], Awaitable[Any]]) -> Any:
    """The answer to one question about the project's requests. No server is started."""
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime

    project = found_project(context)

    async def work() -> Any:
        runtime = Runtime.open(project)
        try:
            return await question(runtime.approvals)
        finally:
            await runtime.close()

    return run_async(work())
