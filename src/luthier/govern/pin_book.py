"""The book of pins: keeps them in the state store, judges every list by them, and takes approvals.

In development the first list of a server pins itself; in production everything waits for a person. Whatever
cannot be read says no: an unreadable store and a value that holds no pins raise StoreError, and the gate
denies. What was judged is looked at again when the store has changed, which is asked once a second.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from luthier.connect.state import MemoryState
from luthier.errors import NotFoundError, Refused, StoreError
from luthier.events import Observers, ToolsChanged
from luthier.govern import pins
from luthier.govern.audit import written_down
from luthier.govern.decisions import written_first
from luthier.govern.digests import pins_digest
from luthier.govern.pins import Judgement, Pin, Review
from luthier.govern.records import Decided, Pinned
from luthier.govern.storing import asked
from luthier.redaction import logger
from luthier.taint import UNTRUSTED
from luthier.text import near
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from luthier.clock import Clock
    from luthier.connect.state import StateStore
    from luthier.govern.audit import AuditLog
    from luthier.taint import Label
    from luthier.tools import Manifest, Tool

    T = TypeVar("T")

_log = logger("luthier.govern")

PINS = "pins"
SHOWN = "shown"
FIRST_USE = "first use"

AGAIN = 1.0
"""Seconds for which the store is taken to be as it was."""

_MOST = 4096  # tools that are known to be good; a list that is read again brings new ones
_MANY = 16  # definitions whose canonical form is made beside the loop, not on it


class PinBook:
    """`production`: nothing is pinned by itself.

    `audit` is told what a person approves, before it counts, and what pinned itself; `label_of` is the label
    of what a server says.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        clock: Clock,
        observers: Observers | None = None,
        production: bool = False,
        audit: AuditLog | None = None,
        label_of: Callable[[str], Label] = lambda _: UNTRUSTED,
    ) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._observers = observers or Observers()
        self._production = production
        self._label_of = label_of
        self._good: dict[int, Tool] = {}  # the tools themselves, so that their ids stay theirs
        self._raws: dict[str, dict[str, str]] = {}  # of each pin of a server, the hash of its bytes
        self._told: dict[str, tuple[Any, ...]] = {}  # of each server, what differed when it was last told
        self._pinning: dict[str, asyncio.Task[None]] = {}
        self._revision = -1
        self._looked_at = float("-inf")

    def is_good(self, tool: Tool) -> bool:
        """Whether this very tool was judged, and well. Raises StoreError."""
        if self._clock.monotonic() - self._looked_at >= AGAIN:
            self._look()
        return id(tool) in self._good

    async def fits(self, tool: Tool) -> bool:
        """Whether the tool is as it was pinned. Raises StoreError."""
        server = tool.uri.server
        raw = (await self._raws_of(server) or {}).get(tool.name)
        revision = self._revision
        if raw is None:
            return False
        if not pins.is_same(tool, raw) and not pins.fits(tool, (await self._pins_of(server)).get(tool.name)):
            return False
        if revision == self._revision:  # else it was judged by pins that may be old by now
            if len(self._good) >= _MOST:
                self._good.clear()
            self._good[id(tool)] = tool
        return True

    async def waits(self, server: str) -> bool:
        """Whether nothing of a server may be used, or even asked for, before a person approves it."""
        return self._production and await self._raws_of(server) is None

    async def judge(self, manifest: Manifest, *, wait: bool = True) -> Judgement:
        """The manifest without what is held back. Raises StoreError.

        The first list of a server is good by itself, and being pinned. `wait` False: it is handed out while
        that goes on. Nothing is called before it is done.
        """
        server = manifest.server
        raws = await self._raws_of(server)
        if raws is None and server in self._pinning:  # begun meanwhile
            raws = await self._raws_of(server)
        if raws is None:
            if self._production:
                return Judgement(msgspec.structs.replace(manifest, tools=(), dropped=()), waiting=True)
            if manifest.tools:
                self._pin_first(manifest)
            if not manifest.tools or not wait:
                return Judgement(manifest)
            raws = await self._raws_of(server)
            if raws is None:
                raise StoreError(f"The pins of server {server!r} were not kept.")
        judgement = await self._judged(manifest, raws)
        self._tell(judgement)
        return judgement

    async def close(self) -> None:
        """Return when all pins are kept. What could not be kept is pinned at the next use."""
        for server in list(self._pinning):
            try:
                await self._settled(server)
            except Exception as error:  # noqa: BLE001  (whatever a store raises)
                _log.warning("the tools of server %r could not be pinned: %s", server, error)

    async def _judged(self, manifest: Manifest, raws: dict[str, str]) -> Judgement:
        other = sum(tool.name in raws and not pins.is_same(tool, raws[tool.name]) for tool in manifest.tools)
        if not other:
            return pins.judge(manifest, raws)
        there = await self._pins_of(manifest.server)
        return await (asyncio.to_thread if other > _MANY else _here)(pins.judge, manifest, raws, there)

    async def review(self, manifest: Manifest) -> Review:
        """Each tool beside its pin. Nothing is pinned by it. Raises StoreError."""
        await self._settled(manifest.server)
        stored = await self._run(self._store.get, PINS, manifest.server)
        return _readable(partial(pins.review, manifest), stored, manifest.server)

    async def show(self, review: Review) -> None:
        """Note that a person was shown this: the next approval is of just this."""
        shown = {tool.name: tool.hash for tool in review.pending}
        await self._run(self._store.put, SHOWN, review.server, shown)

    async def approve(
        self, review: Review, names: Iterable[str] = (), *, by: str, via: str = "python"
    ) -> tuple[str, ...]:
        """Pin the tools of a review, all that are pending or those named; the names of what changed.

        Approved is what the review holds, whatever the server lists by now. Raises Refused where a person was
        shown something else, or where pins were changed since the review; NotFoundError for unknown names;
        AuditError.
        """
        wanted = _wanted(review, tuple(names))
        shown = await self._run(self._store.get, SHOWN, review.server)
        if shown is not None:
            _same_as_shown(review.server, wanted, _readable(_hashes_in, shown, review.server))
        made = pins.pinned((tool.tool for tool in wanted if tool.tool), at=self._clock.now(), by=by)
        before = {tool.name: tool.pin for tool in review.tools if tool.pin is not None}
        gone = {tool.name for tool in wanted if tool.tool is None}
        after = {name: pin for name, pin in (before | made).items() if name not in gone}
        value = pins.stored(after)
        said = [_decided(review.server, tool, by, via) for tool in wanted]
        async with nullcontext() if self._audit is None else written_first(self._audit, *said):
            if not await self._run(self._store.swap, PINS, review.server, review.stored, value):
                raise _changed(review.server, "Its pins were changed meanwhile.")
        await self._run(self._store.delete, SHOWN, review.server)
        self._looked_at = float("-inf")
        return tuple(sorted(gone | made.keys()))

    def _pin_first(self, manifest: Manifest) -> None:
        """Begin to pin a list."""
        pinning = self._pinned_first(manifest)
        self._pinning[manifest.server] = asyncio.get_running_loop().create_task(pinning)

    async def _pinned_first(self, manifest: Manifest) -> None:
        """Pin a list, and write that down. If another process was first, its pins hold."""
        server, tools = manifest.server, manifest.tools
        made = pins.stored(pins.pinned(tools, at=self._clock.now(), by=FIRST_USE))
        if await self._run(self._store.swap, PINS, server, None, made) and self._audit is not None:
            uri = str(ToolUri.mcp(server, "*"))
            await written_down(self._audit, Pinned(uri=uri, tools=len(tools), pins=pins_digest(tools)))

    async def _settled(self, server: str) -> None:
        """Return when a list that is being pinned is. Raises what kept it from that."""
        pinning = self._pinning.get(server)
        if pinning is None:
            return
        try:
            await asyncio.shield(pinning)
        finally:
            if pinning.done() and self._pinning.get(server) is pinning:
                del self._pinning[server]

    async def _raws_of(self, server: str) -> dict[str, str] | None:
        await self._settled(server)
        self._look()
        raws = self._raws.get(server)
        if raws is None:
            revision = self._revision
            value = await self._run(self._store.get, PINS, server)
            if value is None:
                return None
            raws = {name: pin.raw for name, pin in _readable(pins.pins_in, value, server).items()}
            if revision == self._revision:
                self._raws[server] = raws
        return raws

    async def _pins_of(self, server: str) -> dict[str, Pin]:
        value = await self._run(self._store.get, PINS, server)
        return {} if value is None else _readable(pins.pins_in, value, server)

    def _look(self) -> None:
        """Forget what was judged if the store has changed."""
        revision = self._store.revision()
        if revision != self._revision:
            self._revision = revision
            self._good.clear()
            self._raws.clear()
        self._looked_at = self._clock.monotonic()

    def _tell(self, judgement: Judgement) -> None:
        """Tell of a difference once."""
        server = judgement.manifest.server
        differs = (judgement.held, judgement.removed)
        if not any(differs):
            self._told.pop(server, None)
            return
        if self._told.get(server) == differs:
            return
        self._told[server] = differs
        self._observers.notify(
            ToolsChanged(
                at=self._clock.now(),
                server=server,
                changed=_those(judgement, "changed"),
                added=_those(judgement, "new"),
                removed=judgement.removed,
                label=self._label_of(server),
            )
        )

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        """A store in memory keeps nobody waiting; another one is asked beside the loop."""
        if isinstance(self._store, MemoryState):
            return function(*arguments)
        return await asked(self._clock, self._store, partial(function, *arguments))


def _decided(server: str, tool: pins.Reviewed, by: str, via: str) -> Decided:
    uri = str(ToolUri.mcp(server, tool.name))
    decision = "removed" if tool.tool is None else "approved"
    return Decided(call="", uri=uri, approval=server, request=tool.hash, decision=decision, by=by, via=via)


async def _here(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def _those(judgement: Judgement, why: str) -> tuple[str, ...]:
    return tuple(sorted(name for name, is_ in judgement.held.items() if is_ == why))


def _readable(read: Callable[[Any], T], value: Any, server: str) -> T:
    try:
        return read(value)
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(
            f"The pins of server {server!r} cannot be read: {error}.",
            hint="Restore the store; none of the server's tools is used until then.",
        ) from None


def _hashes_in(value: Any) -> dict[str, str]:
    return msgspec.convert(value, dict[str, str])


def _wanted(review: Review, names: tuple[str, ...]) -> list[pins.Reviewed]:
    if not names:
        return list(review.pending)
    known = {tool.name: tool for tool in review.tools}
    for name in names:
        if name not in known:
            where = f"on server {review.server!r}"
            raise NotFoundError("tool", name, near=near(name, known), where=where)
    return [known[name] for name in dict.fromkeys(names) if known[name].why]


def _same_as_shown(server: str, wanted: Iterable[pins.Reviewed], shown: Mapping[str, str]) -> None:
    for tool in wanted:
        if shown.get(tool.name) != tool.hash:
            raise _changed(server, f"Tool {tool.name!r} was changed since it was shown.")


def _changed(server: str, reason: str) -> Refused:
    return Refused(
        "approval",
        f"Nothing was approved: {reason}",
        rule="pins",
        place=f"pins of server {server!r}",
        hint=f"Look again: luthier tools diff {server}",
    )


__all__ = ["FIRST_USE", "PINS", "Judgement", "Pin", "PinBook", "Review"]
