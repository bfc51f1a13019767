"""`luthier approvals`: the calls and questions that wait for a person, and the person's word."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from luthier.cli.options import OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.govern import Approvals, Request

    T = TypeVar("T")

app = typer.Typer(
    help="Calls and questions that wait for a person.", no_args_is_help=True, rich_markup_mode=None
)

IdArgument = Annotated[str, typer.Argument(help="A request's id, as `list` shows it.")]
WhichArgument = Annotated[str, typer.Argument(help="A request's id, as `list` shows it, or its token.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the run that waits for it.")]
WhyOption = Annotated[str, typer.Option("--reason", "-m", help="Why; it goes along with the decision.")]


@app.command("list")
@command
def list_requests(context: typer.Context, json: JsonOption = False) -> int:
    """List what waits for a decision, was decided and not used yet, or expired in a run that waits still."""
    from luthier.cli.render import echo, show_table, to_json

    requests = _asked(context, lambda approvals: approvals.list())
    if json:
        echo(to_json({"requests": [_document(request) for request in requests]}))
        return OK
    rows = [
        (
            request.id,
            request.state,
            request.uri or f"step {request.step}",
            " > ".join(request.principals),
            request.run,
            request.prompt or request.reason or request.rule,
        )
        for request in requests
    ]
    show_table(("id", "", "what", "caller", "run", "because"), rows)
    return OK


@app.command("show")
@command
def show_request(context: typer.Context, request: IdArgument, json: JsonOption = False) -> int:
    """Show one request: what is asked, by whom, each value and where it came from."""
    from luthier.cli.asking import lines_of
    from luthier.cli.render import echo, to_json

    found = _asked(context, lambda approvals: approvals.get(request))
    echo(to_json(_document(found)) if json else "\n".join(lines_of(found)))
    return OK


@app.command("token")
@command
def token(context: typer.Context, request: IdArgument, json: JsonOption = False) -> int:
    """Make a token that decides about one request, once, in the hands of whoever has it."""
    from luthier.cli.render import echo, to_json

    made = _asked(context, lambda approvals: approvals.token(request))
    echo(to_json({"request": request, "token": made}) if json else made)
    return OK


@app.command("approve")
@command
def approve(
    context: typer.Context,
    request: WhichArgument,
    answer: Annotated[
        str | None, typer.Option("--answer", "-a", help="The answer that is asked for, as JSON or text.")
    ] = None,
    reason: WhyOption = "",
    resume: ResumeOption = False,
    json: JsonOption = False,
) -> int:
    """Let that one call be made, once, or answer the question."""
    from luthier.cli.asking import typed_value

    async def approved(approvals: Approvals, via: str) -> Request:
        if answer is None:
            return await approvals.approve(request, why=reason, via=via)
        schema = (await approvals.get(request)).schema
        return await approvals.approve(request, answer=typed_value(answer, schema), why=reason, via=via)

    return _decide(context, approved, resume=resume, json=json)


@app.command("deny")
@command
def deny(
    context: typer.Context,
    request: WhichArgument,
    reason: WhyOption = "",
    resume: ResumeOption = False,
    json: JsonOption = False,
) -> int:
    """Have that call refused, or say no to the question."""

    async def denied(approvals: Approvals, via: str) -> Request:
        return await approvals.deny(request, why=reason, via=via)

    return _decide(context, denied, resume=resume, json=json)


def _decide(
    context: typer.Context,
    decide: Callable[[Approvals, str], Awaitable[Request]],
    *,
    resume: bool,
    json: bool,
) -> int:
    """Decide; with `resume` the output is that of the run, which goes on."""
    from luthier.cli.asking import person
    from luthier.cli.render import echo, to_json
    from luthier.text import one_line

    decided: Request = _asked(context, lambda approvals: decide(approvals, f"cli, {person()}"))
    what = decided.uri or f"step {decided.step!r} of run {decided.run}"
    told = f"{decided.state}: {one_line(what)} ({decided.id})"
    if resume and decided.durable:
        from luthier.cli.playing import gone_on

        echo(told, sys.stderr)
        return gone_on(context, decided.root, json=json, quiet=False)
    echo(to_json(_document(decided)) if json else told)
    return OK


def _document(request: Request) -> dict[str, Any]:
    """A request as plain JSON values; the hash of its token is nobody's business."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(request)
    del found["token"]
    return found


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
