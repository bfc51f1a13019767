"""What belongs to one connection of a client and ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.server.connection import Connection


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The connection that a request came by.

    The SDK hands out its public class `Connection` nowhere, and has nothing else that ends with a session.
    """
    return context.session._connection  # noqa: SLF001


def state_of(context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """Values that are kept as long as the connection."""
    return connection_of(context).state
