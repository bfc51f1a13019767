"""The manifest of one server as last read: how long it holds and when it is read again, once for all who ask.

Two questions have two answers. Who lists tools gets a list no older than the server's own `ttlMs` allows,
or the entry's `cache_ttl` where the server says nothing. A call needs only the definition of its tool, and
a server that calls every list stale at once must not double the price of every call: a call is judged by
the list of the session that carries it, as long as the entry's `cache_ttl` allows it and no change was
announced.

A list belongs to one connection, and so to one owner of credentials: one that its server calls private
(`cacheScope`) is shown to nobody else, nor is any other.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

from luthier.errors import ConnectError, WireError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from luthier.clock import Clock
    from luthier.tools import Manifest, Tool

LONGEST = 24 * 3600.0
"""No list is trusted for more than a day, whatever its server says."""

AGAIN = 30.0
"""Seconds before a list that could not be read is asked for again, while an older one is at hand."""

QUIET = 1.0
"""Seconds after a reading in which an announced change is not read before the list is used."""

_ROUNDS = 3  # readings in a row, where a change is announced during each


class ManifestCache:
    """`fetch` reads the list anew; `ttl` is the entry's, in seconds, 0 for no cache."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Manifest]],
        *,
        ttl: float,
        clock: Clock,
        on_kept: Callable[[WireError], None],
    ) -> None:
        self._fetch = fetch
        self._ttl = ttl
        self._clock = clock
        self._on_kept = on_kept  # told when a list could not be read and the old one is kept
        self._manifest: Manifest | None = None
        self._tools: dict[str, Tool] = {}
        self._listable_until = 0.0
        self._callable_until = 0.0
        self._read_at = 0.0
        self._holds = False  # whether nothing was announced since
        self._reading: asyncio.Task[Manifest] | None = None
        self._announced = False

    def known(self, name: str, max_age: float | None = None) -> Tool | None:
        """The tool of that name for a call; None when it is not in the list, or the list may not be used.

        With `max_age`, in seconds, the list may be as old as that, unless something was announced since.
        """
        now = self._clock.monotonic()
        good = now < self._callable_until
        if not good and max_age is not None and self._holds:
            good = now - self._read_at < min(max_age, LONGEST)
        return self._tools.get(name) if good else None

    async def manifest(self, *, fresh: bool = False) -> Manifest:
        """The list, read again when it is too old or `fresh` is asked for. Raises WireError."""
        old = self._manifest
        if old is not None and not fresh and self._clock.monotonic() < self._listable_until:
            return old
        reading = self._reading or self._read()
        try:
            return await asyncio.shield(reading)
        except WireError as error:
            if old is not None and not fresh and not isinstance(error, ConnectError):
                return old
            raise copy.copy(error) from error.__cause__

    def expire(self) -> None:
        """The next use reads the list again: its server may have become another."""
        self._listable_until = self._callable_until = 0.0
        self._holds = False

    def changed(self) -> None:
        """The server announced a change: read the list again, once for any number of announcements.

        Now, or at its next use where it was read a moment ago: a server that announces a change whenever
        its list is read must not keep us reading.
        """
        self.expire()
        self._announced = True
        quiet = self._clock.monotonic() - self._read_at >= QUIET
        if self._manifest is not None and self._reading is None and quiet:
            self._read()

    @property
    def reading(self) -> asyncio.Task[Manifest] | None:
        """The reading under way. It ends when its connection does."""
        return self._reading

    def _read(self) -> asyncio.Task[Manifest]:
        self._reading = asyncio.get_running_loop().create_task(self._refresh())
        self._reading.add_done_callback(self._done)
        return self._reading

    def _done(self, reading: asyncio.Task[Manifest]) -> None:
        self._reading = None
        error = None if reading.cancelled() else reading.exception()
        if isinstance(error, WireError) and self._manifest is not None:
            self._listable_until = self._callable_until = self._clock.monotonic() + AGAIN
            self._on_kept(error)

    async def _refresh(self) -> Manifest:
        for _ in range(_ROUNDS):
            self._announced = False
            manifest = await self._fetch()
            if not self._announced:
                break
        self._keep(manifest)
        return manifest

    def _keep(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._tools = {tool.name: tool for tool in manifest.tools}
        self._read_at = now = self._clock.monotonic()
        self._holds = True
        told = self._ttl if manifest.ttl_ms is None else min(manifest.ttl_ms / 1000, LONGEST)
        self._listable_until = now + told
        self._callable_until = now + max(told, self._ttl)
