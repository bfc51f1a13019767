"""Which lines of the log a client wants: since 2026-07-28 each request says so, before it a session does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from luthier.caller import Level
from luthier.serve.connections import state_of

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp_types import EmptyResult, SetLevelRequestParams

    Context = ServerRequestContext[Any, Any]

_ORDER: tuple[Level, ...] = get_args(Level)
_KEY = "luthier.level"
_USUAL: Level = "info"


async def set_level(context: Context, params: SetLevelRequestParams) -> EmptyResult:
    """Remember the level that a session wants."""
    from mcp_types import EmptyResult

    state_of(context)[_KEY] = params.level
    return EmptyResult()


def wants(context: Context, level: Level) -> bool:
    """Whether the client that sent this request wants lines of that level."""
    from mcp.server.connection import allowed_log_levels

    if level not in allowed_log_levels(context.protocol_version, context.meta):
        return False
    return _ORDER.index(level) >= _ORDER.index(
        state_of(context).get(_KEY, _USUAL if is_old(context) else "debug")
    )


def is_old(context: Context) -> bool:
    """Whether the request came over a session of the revisions before 2026-07-28."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return context.protocol_version not in MODERN_PROTOCOL_VERSIONS
