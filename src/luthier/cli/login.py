"""`luthier servers login`: lets a person log in to a server, and keeps what comes of it."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import OK, command, found_project, start_logging

if TYPE_CHECKING:
    from luthier.spec import Project, ServerEntry


@command
def login(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="A server's id.")],
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, where there is a terminal.")
    ] = True,
) -> int:
    """Log in to a server in a browser. Its tokens are kept under .luthier, for its owner's eyes only."""
    from luthier.cli.render import echo
    from luthier.cli.stopping import run_async

    start_logging(context)
    project = found_project(context)
    entry = _entry(project, server)
    scope = run_async(_logged_in(project, entry, browser=browser and sys.stderr.isatty()))
    echo(f"logged in to {server}{f' ({scope})' if scope else ''}", sys.stderr)
    return OK


def _entry(project: Project, server: str) -> ServerEntry:
    from luthier.errors import ApprovalNeededError, Fault, InputError, NotFoundError
    from luthier.text import near

    entry = project.servers.get(server)
    if entry is None:
        raise NotFoundError("server", server, near=near(server, project.servers), where="in the project")
    if entry.url is None or entry.auth.type != "oauth" or not entry.auth.interactive:
        suggestion = "its entry says how one logs in: auth: {type: oauth, interactive: true}"
        raise InputError([Fault(f"server {server!r} has no login", suggestion=suggestion)])
    if not entry.approved:
        raise ApprovalNeededError(server=server, place=entry.origin.place("approved"))
    return entry


async def _logged_in(project: Project, entry: ServerEntry, *, browser: bool) -> str:
    """The scope that was granted, safe to show."""
    from luthier.cli.render import echo
    from luthier.clock import SystemClock
    from luthier.connect import ServerRegistry
    from luthier.connect.targets import auth_of, target_of
    from luthier.govern.places import STATE_FOLDER
    from luthier.runtime.sources import sources_of, state_of
    from luthier.secrets import find_keys
    from luthier.spec.urls import rules_of
    from luthier.text import one_line
    from luthier.wire.auth import FileTokens, Means, log_in
    from luthier.wire.http import HttpClient

    async def show(address: str) -> None:
        echo("Log in at this address; it leads back to this command:", sys.stderr)
        echo(address)
        sys.stdout.flush()
        if browser:
            await asyncio.to_thread(webbrowser.open, address)

    environ = sources_of(project, os.environ, lambda: state_of(project, os.environ))
    registry = ServerRegistry.of(project)
    target, auth = target_of(entry, registry, environ), auth_of(entry, registry, environ)
    clock = SystemClock()
    tokens = FileTokens(
        project.root / STATE_FOLDER / "tokens.json", clock, find_keys(environ, "tokens", project=project.root)
    )
    client = HttpClient(environ)
    try:
        means = Means(
            entry.id,
            target.url,
            client,
            clock,
            rules_of(entry, project.environment),
            target.tls,
            target.proxy,
        )
        grant = await log_in(auth, means, tokens, show)
    finally:
        await client.close()
    return one_line(grant.scope or "")
