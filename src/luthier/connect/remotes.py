"""Sessions with servers by URL, all over one HTTP client. Loaded with the first server that needs it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from luthier.connect.openings import Opened
from luthier.connect.references import off_loop
from luthier.connect.targets import auth_of, secret_of, target_of
from luthier.spec.urls import rules_of
from luthier.wire.auth.account import PATIENCE
from luthier.wire.auth.factory import account_of, make_authorizer
from luthier.wire.http import HttpClient, HttpTarget, Remembered, open_remote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from luthier.clock import Clock
    from luthier.connect.learned import Lesson
    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry
    from luthier.spec.project import Auth
    from luthier.wire import Handlers
    from luthier.wire.auth.tokens import TokenStore
    from luthier.wire.http import Kind

    Show = Callable[[str], Awaitable[None]]

_KINDS: tuple[Kind, ...] = ("http", "sse", "rest")


class HttpRemotes:
    """What servers by URL share, and how a session with each is opened.

    `show` gets the address at which a person is to log in; without it nobody is asked.
    """

    def __init__(
        self, *, clock: Clock, environ: Mapping[str, str], tokens: TokenStore, show: Show | None = None
    ) -> None:
        self._clock = clock
        self._environ = environ
        self._tokens = tokens
        self._show = show
        self._client = HttpClient(environ)

    async def open(
        self, entry: ServerEntry, registry: ServerRegistry, lesson: Lesson | None, handlers: Handlers
    ) -> Opened:
        """A session, or one WireError. `lesson` is what the server answered to before."""
        auth, target = await off_loop(entry, self._clock, partial(self._read, entry, registry))
        person = await self._waits_for_a_person(entry, auth, target.url)
        remote = await open_remote(
            self._client,
            target,
            entry.transport if entry.transport != "stdio" else "auto",
            clock=self._clock,
            timeout=entry.timeout + (PATIENCE if person else 0.0),
            pinned=entry.protocol,
            remembered=_remembered(lesson),
            handlers=handlers,
        )
        return Opened(remote.session, remote.kind)

    def _read(self, entry: ServerEntry, registry: ServerRegistry) -> tuple[Auth, HttpTarget]:
        auth = auth_of(entry, registry, self._environ)
        return auth, self._target(entry, registry, auth)

    async def _waits_for_a_person(self, entry: ServerEntry, auth: Auth, url: str) -> bool:
        """Whether somebody has to log in first, and can be asked to."""
        if self._show is None or auth.type != "oauth" or not auth.interactive:
            return False
        try:
            grant = await self._tokens.load(account_of(auth, server=entry.id, url=url).key)
        except OSError:
            return False  # the first request tells of it
        return grant is None or grant.tokens is None

    def _target(self, entry: ServerEntry, registry: ServerRegistry, auth: Auth) -> HttpTarget:
        """Where the server is, and what is shown to it."""
        target = target_of(entry, registry, self._environ)
        authorizer = make_authorizer(
            auth,
            server=entry.id,
            url=target.url,
            secret=secret_of(entry, self._environ),
            client=self._client,
            tokens=self._tokens,
            clock=self._clock,
            rules=rules_of(entry, registry.environment),
            interactive_allowed=self._show is not None,
            show=self._show,
            tls=target.tls,
            proxy=target.proxy,
        )
        return msgspec.structs.replace(target, authorizer=authorizer)

    async def close(self) -> None:
        """Close all connections of the client, and wait for no login any more."""
        self._tokens.pool.close()
        await self._client.close()


def _remembered(lesson: Lesson | None) -> Remembered | None:
    if lesson is None or lesson.transport not in _KINDS:
        return None
    return Remembered(lesson.transport, lesson.era)
