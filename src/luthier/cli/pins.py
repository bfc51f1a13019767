"""`luthier tools diff` and `approve`: what a server's tools are against what was approved of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import OK, JsonOption, command, found_project, start_logging, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.errors import LuthierError
    from luthier.events import Observer
    from luthier.govern import Review, Reviewed
    from luthier.govern.differences import Difference
    from luthier.spec import Project
    from luthier.text import Finding

_MARKS = {"new": "+", "removed": "-", "changed": "~"}
_LONG = 400  # characters of a text of which only what changed is shown
_AROUND = 60  # characters shown before and behind what changed
_WIDEST = 10  # characters of an escape


@command
def diff_tools(
    context: typer.Context,
    server: Annotated[str | None, typer.Argument(help="Only this server's.")] = None,
    json: JsonOption = False,
) -> int:
    """Show how the tools that servers list now differ from those that were approved."""
    from luthier.cli.render import echo, show_error, to_json
    from luthier.cli.stopping import run_async

    project = found_project(context)
    reviews, failed = run_async(_reviewed(project, server, start_logging(context)))
    if server and failed:
        raise failed[server]
    if json:
        document = {
            "servers": [described(review) for review in reviews],
            "failed": {id: str(error) for id, error in failed.items()},
        }
        echo(to_json(document))
    else:
        for review in reviews:
            echo("\n".join(lines(review)))
    for error in failed.values():
        show_error(error)
    return OK if reviews else status_of(failed.values())


@command
def approve_tools(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="A server's id.")],
    tools: Annotated[list[str] | None, typer.Argument(help="Only these of its tools.")] = None,
    json: JsonOption = False,
) -> int:
    """Approve what a server lists now. What `diff` showed last is what is approved, or nothing is."""
    from luthier.cli.render import echo, to_json
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime

    log = start_logging(context)
    project = found_project(context)

    async def work() -> tuple[Review, tuple[str, ...]]:
        runtime = Runtime.open(project, observers=log)  # not entered: that insists on required servers
        try:
            review = await runtime.review_tools(server)
            return review, await runtime.pins.approve(review, tools or (), by="operator", via="cli")
        finally:
            await runtime.close()

    review, names = run_async(work())
    if json:
        echo(to_json({"server": server, "approved": names}))
        return OK
    for tool in review.pending:
        if tool.name in names:
            echo("\n".join(_tool_lines(tool)))
    echo(f"{server}: approved {len(names)} of {len(review.pending)} changes" if names else _quiet(review))
    return OK


async def _reviewed(
    project: Project, server: str | None, log: Iterable[Observer]
) -> tuple[list[Review], dict[str, LuthierError]]:
    """A review of each server, noted as shown; and why there is none of some."""
    from luthier.errors import LuthierError
    from luthier.runtime import Runtime

    ids = [server] if server else [e.id for e in project.servers.values() if e.approved and not e.disabled]
    reviews: list[Review] = []
    failed: dict[str, LuthierError] = {}
    runtime = Runtime.open(project, observers=log)  # not entered: that insists on required servers
    try:
        for id in ids:
            try:
                review = await runtime.review_tools(id)
            except LuthierError as error:
                failed[id] = error
            else:
                await runtime.pins.show(review)
                reviews.append(review)
    finally:
        await runtime.close()
    return reviews, failed


def lines(review: Review) -> list[str]:
    """A review for people."""
    if not review.pending:
        return [_quiet(review)]
    said = [f"{review.server}: nothing is approved yet" if review.first else f"{review.server}:"]
    for tool in review.pending:
        said += [f"  {line}" for line in _tool_lines(tool)]
    said.append(f"  To approve just this: luthier tools approve {review.server}")
    return said


def described(review: Review) -> dict[str, Any]:
    """A review as JSON."""
    import msgspec

    return {
        "server": review.server,
        "first": review.first,
        "tools": [
            {
                "name": tool.name,
                "state": tool.why or "approved",
                "hash": tool.hash,
                "approved": {"hash": tool.pin.full_hash, "at": tool.pin.at, "by": tool.pin.by}
                if tool.pin
                else None,
                "differences": [msgspec.to_builtins(one) for one in _differences(tool)],
                "findings": [msgspec.to_builtins(one) for one in _findings(tool)],
            }
            for tool in review.tools
        ],
    }


def _quiet(review: Review) -> str:
    return f"{review.server}: all {len(review.tools)} tools are as they were approved"


def _tool_lines(tool: Reviewed) -> list[str]:
    from luthier.text import one_line

    said = [f"{_MARKS[tool.why]} {one_line(tool.name)}  {tool.why}  {tool.hash[:12]}".rstrip()]
    said += [f"    {line}" for one in _differences(tool) for line in _difference_lines(one)]
    return said + [f"    {line}" for line in finding_lines(_findings(tool))]


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Findings for people."""
    from luthier.text import one_line

    return [f"! {one.rule} at {one_line(one.path) or '/'}: {one_line(one.note)}" for one in findings]


def _findings(tool: Reviewed) -> tuple[Finding, ...]:
    from luthier.govern.findings import found_in

    return found_in([tool.tool])[tool.tool.uri] if tool.tool else ()


def _difference_lines(one: Difference) -> list[str]:
    from msgspec import UNSET

    from luthier.text import one_line

    said = [one_line(one.path) or "/"]
    if one.old is not UNSET:
        said.append(f"  - {_shown(one.old, one.new)}")
    if one.new is not UNSET:
        said.append(f"  + {_shown(one.new, one.old)}")
    return said


def _differences(tool: Reviewed) -> tuple[Difference, ...]:
    from luthier.govern.differences import differences
    from luthier.govern.pins import definition_of

    if tool.why == "removed":
        return ()
    old = tool.pin.definition if tool.pin else {}
    return differences(old, definition_of(tool.tool)) if tool.tool else ()


def _shown(value: Any, other: Any) -> str:
    """A value on one line, all of it; of a long text beside another, from the first to the last change."""
    import msgspec

    from luthier.text import one_line

    if isinstance(value, str) and isinstance(other, str) and len(value) > _LONG:
        value = _changed_part(value, other)
    text = msgspec.json.encode(value).decode()
    return one_line(text, len(text) * _WIDEST)


def _changed_part(value: str, other: str) -> str:
    """Without most of what both begin and end with."""
    start = _alike(value, other)
    end = _alike(value[start:][::-1], other[start:][::-1])
    start, stop = max(0, start - _AROUND), len(value) - max(0, end - _AROUND)
    return f"{'…' if start else ''}{value[start:stop]}{'…' if stop < len(value) else ''}"


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
