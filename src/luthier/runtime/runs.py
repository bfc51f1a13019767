"""The runs of a project: those that go on, and those that are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import sleep
from luthier.errors import LuthierError, NotFoundError, RunChangedError, RunError, RunLostError, StoreError
from luthier.events import Observers
from luthier.redaction import logger
from luthier.runtime.expiring import Expiries
from luthier.runtime.pruning import pruned
from luthier.secrets import find_keys
from luthier.store.runs import SqlRuns
from luthier.trace import Trace
from luthier.workflows import Ledger, MemoryRuns, Writer, plan, prepared, resumed
from luthier.workflows.ending import end_here, end_rest
from luthier.workflows.operations.scoring import evaluations_of
from luthier.workflows.owners import BEAT, is_gone, me, release
from luthier.workflows.runs import OPEN, Wanted
from luthier.workflows.taking import see_unchanged, take
from luthier.workflows.waiting import is_decided

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from luthier.context import CallContext
    from luthier.events import Observer
    from luthier.spec import Ensemble, Project
    from luthier.store import Database
    from luthier.taint import Labelled
    from luthier.workflows import Entry, Execution, Run, RunRow, RunStore, Services
    from luthier.workflows.runs import Status

LOOK = 0.5
"""Seconds between two looks at what other processes ask of the runs that go on here."""

PATIENCE = 30.0
"""Seconds for another process to end a run that it drives."""

_log = logger("luthier.runtime")


def run_store(project: Project, environ: Mapping[str, str], database: Database | None) -> RunStore:
    """Where a project's runs are kept: in its database, what is secret of durable ones encrypted."""
    if database is None:
        return MemoryRuns()
    return SqlRuns(database, find_keys(environ, "runs", project=project.root))


class RunHandle:
    """A run that goes on by itself."""

    def __init__(self, id: str, task: asyncio.Task[Run], cancel: Callable[[], None]) -> None:
        self.id = id
        self._task = task
        self._cancel = cancel

    async def wait(self) -> Run:
        """The run, when it has ended. Who waits may stop to; the run goes on."""
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        """End it as a run that was cancelled; `wait` then gives it."""
        self._cancel()


class Runs:
    """What `rt.runs` is. `services` is what each run needs, `forget` is told of the end of each.

    `find` gives an ensemble by its name, or by the file that it was read from.
    """

    def __init__(
        self, services: Services, forget: Callable[[str], None], find: Callable[[str, str], Ensemble]
    ) -> None:
        self._store: RunStore = services.runs or MemoryRuns()
        self._writer = Writer(self._store)
        self._services = msgspec.structs.replace(services, runs=self._store, writer=self._writer)
        self._clock = services.clock
        self._forget = forget
        self._find = find
        self._going: set[asyncio.Task[Run]] = set()
        self._live: dict[str, Execution] = {}
        self._watching: asyncio.Task[None] | None = None
        self._expiries = Expiries(self._store, self._clock, self._gone_on)

    # What is kept

    def list(
        self,
        *,
        limit: int = 50,
        status: Status | None = None,
        ensemble: str | None = None,
        principal: str | None = None,
        before: str | None = None,
        nested: bool = False,
    ) -> tuple[RunRow, ...]:
        """How runs stand, the newest first; `before` is the id of a run that was listed last. StoreError.

        `principal`: only what it began. `nested`: what was begun inside of a run is listed too.
        """
        return self._store.list(
            Wanted(
                limit=limit,
                status=status,
                ensemble=ensemble,
                principal=principal,
                before=before,
                nested=nested,
            )
        )

    def get(self, id: str) -> RunRow:
        """How one run stands. Raises NotFoundError and StoreError."""
        row = self._store.row(id)
        if row is None and id in self._live:  # not written yet
            return self._live[id].row
        if row is None:
            raise NotFoundError("run", id, hint="See which there are: luthier runs list")
        return row

    def record(self, id: str) -> tuple[Entry, ...]:
        """What happened in a run so far. Raises NotFoundError, RecordError and StoreError."""
        self.get(id)
        return self._live[id].record if id in self._live else self._store.read(id)

    def interrupted(self, row: RunRow) -> bool:
        """Whether the run goes on nowhere, and can be resumed."""
        gone = is_gone(row.id, row.owner, row.beat_at, self._clock.now())
        return row.durable and row.status == "running" and gone

    def expired(self, row: RunRow) -> bool:
        """Whether a question that the run waits for is void: it can be resumed, and then goes on without."""
        return row.status == "suspended" and row.void_at is not None and row.void_at <= self._clock.now()

    def mind_all(self, go_on: Callable[[RunRow], Awaitable[object]]) -> None:
        """Until it is closed, go on so with every suspended run of which a question is void.

        Without that, those are gone on with that were suspended here.
        """
        self._expiries.mind_all(go_on)

    async def prune(self, before: float, *, dry_run: bool = False) -> tuple[RunRow, ...]:
        """Take away the runs that ended before that moment (Unix seconds), and give how they stood.

        With each go those inside it, their records, and what they have asked of people. What goes on or waits
        is left whole. `dry_run`: nothing is taken away. Raises StoreError.
        """
        return await pruned(self._store, self._services.people, before, dry=dry_run)

    # What goes on

    def new_id(self) -> str:
        """An id for a run that is about to be made: the `root` of its context."""
        return self._services.new_id()

    def until(self, seconds: float | None) -> float | None:
        """The moment so many seconds from now, as contexts have it; None: no end."""
        return None if seconds is None else self._services.clock.monotonic() + seconds

    async def play(
        self,
        ensemble: Ensemble,
        inputs: Labelled[Any],
        context: CallContext,
        *observers: Observer,
        durable: bool = False,
    ) -> Run:
        """Run to the end. Raises InputError before anything starts."""
        return await self._tracked(self._made(ensemble, inputs, context, *observers, durable=durable))

    def start(
        self,
        ensemble: Ensemble,
        inputs: Labelled[Any],
        context: CallContext,
        *observers: Observer,
        durable: bool = False,
    ) -> RunHandle:
        """Begin a run that goes on by itself. Raises InputError before anything starts."""
        return self._started(self._made(ensemble, inputs, context, *observers, durable=durable))

    def _started(self, made: Execution) -> RunHandle:
        task = asyncio.get_running_loop().create_task(self._tracked(made))
        self._going.add(task)
        task.add_done_callback(self._ended)
        return RunHandle(made.id, task, made.cancel)

    async def resume(self, id: str, *observers: Observer, ensemble: Ensemble | None = None) -> Run:
        """Go on with a durable run where it was. `ensemble` in place of the one of its name and file.

        Raises RunLostError where another process drives it, RunChangedError, RunError for one that cannot be
        resumed or still waits for somebody, NotFoundError, RecordError and StoreError.
        """
        await self._look(id, ensemble)
        return await self._tracked(await self._taken(id, *observers, ensemble=ensemble))

    async def go_on(self, id: str, *observers: Observer, ensemble: Ensemble | None = None) -> RunHandle:
        """As `resume`, but the run goes on by itself."""
        await self._look(id, ensemble)
        return self._started(await self._taken(id, *observers, ensemble=ensemble))

    async def _gone_on(self, row: RunRow, ensemble: Ensemble | None = None) -> RunHandle:
        return await self.go_on(row.id, ensemble=ensemble)

    async def _look(self, id: str, ensemble: Ensemble | None) -> None:
        """See that it waits for nobody, and that what was begun inside is as it was. Raises RunError."""
        row, people = self._open_root(await asyncio.to_thread(self.get, id)), self._services.people
        for one in await asyncio.to_thread(self._store.below, id):
            if one.status in OPEN:
                # The run of an evaluator goes by the name of the ensemble that it belongs to.
                named = row if one.ensemble == row.ensemble else one
                begun = plan((ensemble if named is row else None) or self._find(named.ensemble, named.file))
                digests = [each.digest() for each in (begun, *map(plan, evaluations_of(begun)))]
                await asyncio.to_thread(see_unchanged, self._store, one, *digests)
        waiting = [request for one in row.waiting for request in one.requests]
        if row.status != "suspended" or people is None or await is_decided(waiting, people):
            return
        hint = f"Decide first: luthier approvals approve {waiting[0]}, or deny {waiting[0]}"
        raise RunError(f"The run {id} waits for somebody to decide.", run=id, hint=hint)

    async def cancel(self, id: str) -> RunRow:
        """End a run that goes on here, or a durable one wherever it is, and say how it then stands.

        Its `finally` steps run. Raises RunError for one that has ended, and the same as `resume`.
        """
        row = self._open_root(await asyncio.to_thread(self.get, id))
        if id in self._live:
            self._live[id].cancel()
        elif row.durable:
            await asyncio.to_thread(self._store.stop, id)
        waited = 0.0
        while row.status in OPEN and waited < PATIENCE:
            gone = id not in self._live and is_gone(id, row.owner, row.beat_at, self._clock.now())
            if gone and row.durable:
                await self._end(row)
            else:
                await sleep(self._clock, LOOK / 5)
                waited += LOOK / 5
            row = await asyncio.to_thread(self.get, id)
        return row

    def _ended(self, task: asyncio.Task[Run]) -> None:
        self._going.discard(task)
        if (
            not task.cancelled() and (error := task.exception()) is not None
        ):  # else nobody may ever look at it
            _log.info("a run that goes on by itself was stopped: %s", error)

    async def close(self) -> None:
        """Call off what still goes on, wait for that, and write what is left."""
        await self._expiries.close()
        for task in self._going:
            task.cancel()
        if self._going:
            await asyncio.wait(self._going)
        if self._watching is not None:
            self._watching.cancel()
        await asyncio.to_thread(self._writer.close)

    def _made(
        self,
        ensemble: Ensemble,
        inputs: Labelled[Any],
        context: CallContext,
        *observers: Observer,
        durable: bool,
    ) -> Execution:
        services = self._served(*observers, ledger=Ledger(self._writer) if durable else None)
        id = context.root or services.new_id()
        context = msgspec.structs.replace(context, root=id, trace=context.trace or Trace.fresh())
        self._live[id] = made = prepared(ensemble, inputs, services=services, context=context, id=id)
        return made

    async def _taken(self, id: str, *observers: Observer, ensemble: Ensemble | None = None) -> Execution:
        row = self._open_root(await asyncio.to_thread(self.get, id))
        if id in self._live:
            raise RunLostError(id, row.owner)
        if not row.durable:
            raise RunError(f"The run {id} is not durable, so it cannot be gone on with.", run=id)
        self._expiries.forget(id)
        found = ensemble or self._find(row.ensemble, row.file)
        now = self._clock.now()
        taken = await asyncio.to_thread(take, self._store, row, self._services.plans.of(found).digest(), now)
        if taken.ended:  # meanwhile, by another process
            self._open_root(await asyncio.to_thread(self.get, id))
        services = self._served(*observers, ledger=Ledger(self._writer, resumed=True))
        try:
            self._live[id] = made = resumed(found, taken, services=services)
        except BaseException:
            release(id)
            raise
        return made

    def _open_root(self, row: RunRow) -> RunRow:
        if row.status not in OPEN:
            raise RunError(f"The run {row.id} has ended: {row.status}.", run=row.id)
        if row.root != row.id:
            message = f"The run {row.id} is inside the run {row.root}."
            raise RunError(message, run=row.id, hint=f"Name that one: {row.root}")
        return row

    async def _end(self, row: RunRow) -> None:
        """End a run that nobody drives: by going on with it to its end, or where that cannot be, as it is."""
        try:
            made = await self._taken(row.id)
        except (RunChangedError, NotFoundError) as error:
            _log.warning("the run %s is ended as it is: %s", row.id, error)
            await asyncio.to_thread(end_here, self._store, row, self._clock.now())
            return
        except RunLostError:
            raise
        except RunError:  # it has ended by itself meanwhile
            return
        made.cancel()
        await self._tracked(made)

    def _served(self, *observers: Observer, ledger: Ledger | None) -> Services:
        heard = Observers((self._services.observers, *observers)) if observers else self._services.observers
        return msgspec.structs.replace(self._services, observers=heard, ledger=ledger)

    async def _tracked(self, made: Execution) -> Run:
        durable = made.durable
        if durable and self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            run = await made.run()
        except StoreError as error:
            if not durable or not await asyncio.to_thread(self._may_be_there, made.id):
                raise
            hint = f"{error.hint} Then go on with the run: luthier runs resume {made.id}".strip()
            raise StoreError(error.message, hint=hint) from error
        else:
            if durable and not run.suspended:
                await asyncio.to_thread(end_rest, self._store, made.id, self._clock.now())
            elif durable:
                self._expiries.mind(made.row, made.ensemble)
            return run
        finally:
            self._live.pop(made.id, None)
            self._forget(made.id)

    def _may_be_there(self, id: str) -> bool:
        """Whether any of it was written, or nobody can tell: of a write whose answer was lost, say."""
        try:
            return self._store.row(id) is not None
        except StoreError:
            return True

    async def _watch(self) -> None:
        """Give signs of life, and see which runs other processes want to end, while durable ones go on."""
        beat = self._clock.monotonic() + BEAT
        while True:
            await sleep(self._clock, LOOK)
            durable = [id for id, one in self._live.items() if one.durable]
            if not durable:
                self._watching = None
                return
            try:
                for id in await asyncio.to_thread(self._store.stopped, durable):
                    if id in self._live:
                        self._live[id].cancel()
                if self._clock.monotonic() >= beat:
                    beat = self._clock.monotonic() + BEAT
                    await asyncio.to_thread(self._store.beat, me(), self._clock.now())
            except LuthierError as error:
                _log.warning("what other processes ask of runs cannot be seen: %s", error)
