"""`luthier mock`: a server of the protocol that answers from a file, for clients of every kind."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003  (typer reads the annotations when it runs)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import OK, command

if TYPE_CHECKING:
    from luthier.testing.mock_server import MockOffering


@command
def mock(
    file: Annotated[Path, typer.Argument(help="A mock file, or a recording of `run --record`.")],
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen there; without it, on stdin and stdout.")
    ] = None,
    server: Annotated[str, typer.Option(metavar="ID", help="Which server of a recording.")] = "",
    latency: Annotated[float, typer.Option(metavar="MS", min=0, help="Wait before each answer.")] = 0.0,
    fail_every: Annotated[int, typer.Option(metavar="N", min=0, help="Each Nth call fails.")] = 0,
) -> int:
    """Serve mocked tools as an MCP server."""
    from luthier.cli.stopping import run_async
    from luthier.clock import SystemClock
    from luthier.serve.pipes import claimed_pipes, serve_pipes
    from luthier.serve.protocol import need_sdk

    need_sdk()
    from luthier.testing.mock_file import read_mock_file
    from luthier.testing.mock_server import MockOffering

    found = read_mock_file(file, server)
    offering = MockOffering(
        found, clock=SystemClock(), latency=latency / 1000, fail_every=fail_every, heard=_heard
    )
    if http is not None:
        run_async(_over_http(offering, found.name, http))
        return OK
    with claimed_pipes() as (reading, writing):
        run_async(serve_pipes(offering, reading, writing, name=found.name))
    return OK


async def _over_http(offering: MockOffering, name: str, address: str) -> None:
    from luthier.cli.render import echo
    from luthier.testing.mock_server import mock_listening

    listening = mock_listening(offering, name, address)
    echo(f"mocking {name} at http://{listening.address}/mcp", sys.stderr)
    await listening.serve()


def _heard(name: str, arguments: dict[str, Any]) -> None:
    import msgspec

    from luthier.cli.render import echo
    from luthier.redaction import redact_value
    from luthier.text import one_line

    said = msgspec.json.encode(redact_value(arguments)).decode()
    echo(one_line(f"{name} {said}"), sys.stderr)
