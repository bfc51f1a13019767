"""Two servers that many projects want: a search of the web, and a reader of web pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.errors import NotFoundError
from luthier.redaction import logger
from luthier.spec import ServerEntry
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

_log = logger("luthier.connect")

BRAVE_API_KEY = "BRAVE_API_KEY"

_WEB_SEARCH = ServerEntry(
    id="web-search",
    name="Web search",
    description="Finds pages on the web with Brave Search",
    command="npx",
    args=("--silent", "-y", "@modelcontextprotocol/server-brave-search"),
    env={BRAVE_API_KEY: f"${{{BRAVE_API_KEY}}}"},
)
_FETCH = ServerEntry(
    id="fetch",
    name="Fetch",
    description="Fetches a URL and gives its content as text",
    command="uvx",
    args=("mcp-server-fetch",),
)
_DEFAULTS = {entry.id: entry for entry in (_WEB_SEARCH, _FETCH)}


class Registrar(Protocol):
    """What entries can be registered with: a Runtime, or a registry of one's own."""

    def register(self, entry: ServerEntry, /) -> Awaitable[None] | None:
        """Add the entry, or put it in the place of the one of its id."""


async def register_default_mcp_servers(
    registry: Registrar,
    *,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    brave_api_key: str | None = None,
    allowed_agents: Iterable[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Register `web-search` (npx, needs a key of Brave's) and `fetch` (uvx); the ids of those registered.

    `exclude` wins over `only`. Without `brave_api_key` the key is read from BRAVE_API_KEY when the server is
    started. `allowed_agents` None is everyone. May be repeated. Raises NotFoundError for other ids.
    """
    only, exclude = tuple(_DEFAULTS if only is None else only), tuple(exclude)
    for id in (*only, *exclude):
        if id not in _DEFAULTS:
            raise NotFoundError("default server", id, near=near(id, _DEFAULTS))
    agents = None if allowed_agents is None else tuple(allowed_agents)
    chosen = [id for id in _DEFAULTS if id in only and id not in exclude]
    for id in chosen:
        entry = _DEFAULTS[id]
        if id == _WEB_SEARCH.id:
            entry = _with_key(entry, brave_api_key, os.environ if environ is None else environ)
        done = registry.register(_allowed(entry, agents))
        if done is not None:
            await done
    return tuple(chosen)


def _with_key(entry: ServerEntry, key: str | None, environ: Mapping[str, str]) -> ServerEntry:
    if key is not None:
        literal = key.replace("${", "$${")  # a key is a key, whatever it looks like
        return _replaced(entry, env={**entry.env, BRAVE_API_KEY: literal})
    if not environ.get(BRAVE_API_KEY):
        _log.warning("server %s will not start without a key: set %s", entry.id, BRAVE_API_KEY)
    return entry


def _allowed(entry: ServerEntry, agents: tuple[str, ...] | None) -> ServerEntry:
    return entry if agents is None else _replaced(entry, allowed_agents=agents)


def _replaced(entry: ServerEntry, **fields: object) -> ServerEntry:
    return msgspec.structs.replace(entry, **fields)
