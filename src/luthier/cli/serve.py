"""`luthier serve`: the project's ensembles for clients outside, over pipes or HTTP."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import OK, USAGE, command, found_project, start_logging

if TYPE_CHECKING:
    from luthier.events import Observer
    from luthier.serve import Service
    from luthier.spec import Project


@command
def serve(
    context: typer.Context,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen there; every caller needs a token.")
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve whoever started this process.")] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Print a new token and, on stderr, its hash for the file.")
    ] = False,
) -> int:
    """Offer ensembles as MCP tools to clients outside."""
    from luthier.cli.render import echo
    from luthier.cli.stopping import run_async

    if [http is not None, stdio, new_token].count(True) != 1:
        echo("error: say --http HOST:PORT, --stdio or --new-token, one of them", sys.stderr)
        return USAGE
    if new_token:
        return _new_token()
    from luthier.serve.protocol import need_sdk

    need_sdk()
    log = start_logging(context)
    project = found_project(context)
    if http is not None:
        run_async(_over_http(project, http, log))
    else:
        _over_pipes(project, log)
    return OK


def _new_token() -> int:
    from luthier.cli.render import echo
    from luthier.serve import new_token, token_hash

    token = new_token()
    echo(f"for the file, under `serve: {{clients: {{NAME: […]}}}}`: {token_hash(token)}", sys.stderr)
    echo(token)
    return OK


async def _over_http(project: Project, address: str, log: tuple[Observer, ...]) -> None:
    from luthier.cli.render import echo
    from luthier.runtime import Runtime
    from luthier.serve import Listening, Service

    async with Runtime.open(project, observers=log) as runtime:
        service = Service(runtime)
        _warn(service)
        listening = Listening.on(address, service, project, runtime.environ)
        echo(f"serving at http://{listening.address}/mcp", sys.stderr)
        await listening.serve()


def _over_pipes(project: Project, log: tuple[Observer, ...]) -> None:
    from luthier.cli.stopping import run_async
    from luthier.runtime import Runtime
    from luthier.serve import Service
    from luthier.serve.pipes import claimed_pipes, client_of_pipes, serve_pipes
    from luthier.serve.protocol import Files

    with claimed_pipes() as (reading, writing):

        async def work() -> None:
            async with Runtime.open(project, observers=log) as runtime:
                service = Service(runtime)
                _warn(service)
                files = Files(service, project, client_of_pipes)
                limit = project.serve.max_body_bytes
                await serve_pipes(service, reading, writing, files=files, limit=limit)

        run_async(work())


def _warn(service: Service) -> None:
    from luthier.cli.render import echo

    for name in service.broken:
        echo(f"warning: {name} is not offered: it has faults (luthier check tells which)", sys.stderr)
