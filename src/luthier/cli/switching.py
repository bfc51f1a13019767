"""Turning servers and callers off and on from the command line; no server is started for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.cli.options import OK, found_project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import typer

    from luthier.govern import Switches
    from luthier.spec import Project


def switched(context: typer.Context, what: str, *, on: bool) -> int:
    """Turn `server:ID` or `agent:NAME` on or off."""
    from luthier.cli.asking import person
    from luthier.cli.render import echo
    from luthier.text import one_line

    via = f"cli, {person()}"

    asked(
        found_project(context),
        lambda switches: switches.enable(what, via=via) if on else switches.disable(what, via=via),
    )
    kind, _, name = what.partition(":")
    echo(f"{'enabled' if on else 'disabled'}: {kind} {one_line(name)}")
    return OK


def turned_off(project: Project) -> frozenset[str]:
    """All that is off."""
    return frozenset(off.what for off in asked(project, lambda switches: switches.list()))


def asked(project: Project, question: Callable[[Switches], Awaitable[Any]]) -> Any:
    """The answer to one question about the project's switches."""
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime

    async def work() -> Any:
        runtime = Runtime.open(project)
        try:
            return await question(runtime.switches)
        finally:
            await runtime.close()

    return run_async(work())
