"""Running an ensemble: inputs bound, plan made, and the driver let loose."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.context import CallContext
from luthier.errors import ExpressionError, LuthierError, StepError
from luthier.expr import Scope
from luthier.redaction import logger
from luthier.spec import bind_inputs
from luthier.taint import Labelled
from luthier.trace import Trace
from luthier.workflows.behind import behind
from luthier.workflows.caching import key_of
from luthier.workflows.driver import Driver
from luthier.workflows.fields import initial_state
from luthier.workflows.owners import claim, release
from luthier.workflows.recorder import RunRecorder
from luthier.workflows.taking import Taken, take
from luthier.workflows.waiting import decisions_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import Ensemble
    from luthier.workflows.journal import Ledger
    from luthier.workflows.plan import Plan
    from luthier.workflows.record import Entry
    from luthier.workflows.run import Run
    from luthier.workflows.runs import RunRow
    from luthier.workflows.services import Services

DEPTH = 16
"""How many ensembles may run inside each other."""

GRACE = 5.0
"""Seconds that a step which is called off has to let go; a nested run has less, so that it lets go first."""

_PREFIX = "ensemble:"
_log = logger("luthier.workflows")


class Execution:
    """One run of an ensemble, ready to go: what it was given fits, and nothing has begun."""

    def __init__(
        self,
        ensemble: Ensemble,
        bound: Labelled[Any],
        recorder: RunRecorder,
        services: Services,
        context: CallContext,
    ) -> None:
        self.id = context.run
        self.ensemble = ensemble
        self._services = services
        self._inputs = bound
        self._recorder = recorder
        depth = depth_of(context) - 1
        now = recorder.now
        beside = [] if ensemble.cache is None else behind(ensemble.steps, services)
        self._key = "" if recorder.past else _key(ensemble, recorder.plan, beside, bound, context, now)
        self._driver = Driver(
            recorder, bound, services, context=context, grace=GRACE * 0.8**depth, play=self._play
        )
        if ensemble.state is not None:
            self._driver.share(initial_state(ensemble, bound, now), ensemble.state.types)

    async def run(self) -> Run:
        """Run it to its end; a run that fails is a Run with `success` False.

        Cancelled, it calls its steps off, waits a bounded time for them, keeps the record and passes the
        cancellation on. Of a durable run, raises StoreError or RunLostError where what happens cannot be
        written: it has stopped then, and can be resumed.
        """
        cache, key = self._services.cache, self._key
        claim(self.id)
        try:
            await self._learn()
            found = await cache.get(key) if key else None
            ended = await self._driver.run(None if found is None else found.joined(self._inputs.whole))
        except BaseException:
            if self._services.people is not None:
                self._services.people.forget(self.id)
            raise
        finally:
            release(self.id)
        await self._clear(ended)
        memory = self._driver.memory() if key and ended.success and not ended.cached else None
        if memory is not None and self.ensemble.cache is not None:
            await cache.put(key, memory, self.ensemble.cache.ttl)
        return ended

    @property
    def durable(self) -> bool:
        return self._recorder.journal is not None

    @property
    def row(self) -> RunRow:
        """How it stands while it goes on."""
        journal = self._recorder.journal
        return self._recorder.row if journal is None else journal.row

    @property
    def record(self) -> tuple[Entry, ...]:
        """What happened so far."""
        return tuple(self._recorder.entries)

    async def _learn(self) -> None:
        """See what was decided since the run was left."""
        past, services = self._recorder.past, self._services
        if past:
            now = services.clock.now()
            with _left_on_a_fault(services.ledger):
                self._driver.decided = await decisions_for(self.id, past, services.people, now)

    async def _clear(self, run: Run) -> None:
        """Take back what nobody needs to decide any more, and what was decided and is in the record now."""
        people = self._services.people
        if people is None:
            return
        try:
            await people.withdraw(self.id, keep={id for one in run.suspended for id in one.requests})
        except LuthierError as error:
            _log.warning("what the run %s has asked could not be taken back: %s", self.id, error)

    def cancel(self) -> None:
        """End it from outside, as a run that was cancelled: `finally` runs, within its bounds."""
        self._driver.cancel()

    async def _play(self, inner: Ensemble, given: Labelled[Any], caller: CallContext) -> Run:
        """Run an ensemble inside this one; that of a run that was resumed may have begun before."""
        id, ledger, store = inner_id(caller), self._services.ledger, self._services.runs
        if ledger is not None and ledger.resumed and store is not None:
            took = None
            with _left_on_a_fault(ledger):
                row = await asyncio.to_thread(store.row, id)
                if row is not None:
                    now, digest = self._services.clock.now(), self._services.plans.of(inner).digest()
                    took = await asyncio.to_thread(take, store, row, digest, now)
            if took is not None:
                made = resumed(inner, took, services=self._services, caller=caller)
                return await made.run()
        return await prepared(inner, given, services=self._services, context=caller, id=id).run()


@contextmanager
def _left_on_a_fault(ledger: Ledger | None) -> Iterator[None]:
    """Where a run cannot be gone on with, that is no failure of a step: all of it is left as it is."""
    try:
        yield
    except LuthierError as error:
        if ledger is not None:
            ledger.fail(error)
        raise


def prepared(
    ensemble: Ensemble,
    inputs: Labelled[dict[str, Any]] | None = None,
    *,
    services: Services,
    context: CallContext | None = None,
    timeout: float | None = None,
    id: str = "",
) -> Execution:
    """A new run. `timeout` is seconds for the whole of it; an earlier deadline in the context wins.

    Raises InputError, SpecError and StepError.
    """
    context = context or CallContext()
    if depth_of(context) >= DEPTH:
        message = f"ensembles run more than {DEPTH} deep inside each other, down to {ensemble.name}"
        raise StepError("code", message)
    now = services.clock.now()
    bound = bind_inputs(ensemble, inputs if inputs is not None else Labelled({}), now=now)
    deadline = context.deadline
    if timeout is not None:
        ours = services.clock.monotonic() + timeout
        deadline = ours if deadline is None else min(ours, deadline)
    id = id or services.new_id()
    within = msgspec.structs.replace(
        context.within(_PREFIX + ensemble.name),
        run=id,
        root=context.root or id,
        step="",
        deadline=deadline,
        durable=services.ledger is not None,
    )
    recorder = RunRecorder(services.plans.of(ensemble), services, within, parent=context.run, now=now)
    return Execution(ensemble, bound, recorder, services, within)


def resumed(
    ensemble: Ensemble, taken: Taken, *, services: Services, caller: CallContext | None = None
) -> Execution:
    """A run that this process has taken. `caller` is the context of the step that it runs inside of."""
    started, clock = taken.started, services.clock
    if caller is not None:
        deadline = caller.deadline
    elif started.deadline is not None:
        deadline = started.deadline - clock.now() + clock.monotonic()
    else:
        deadline = None
    context = CallContext(
        principals=started.principals,
        run=taken.row.id,
        root=taken.row.root,
        deadline=deadline,
        control=started.control,
        trace=Trace.fresh() if caller is None else caller.trace,
        durable=True,
    )
    recorder = RunRecorder(
        services.plans.of(ensemble),
        services,
        context,
        parent=started.parent,
        now=taken.row.started_at,
        past=taken.record,
    )
    return Execution(ensemble, started.inputs, recorder, services, context)


def depth_of(context: CallContext) -> int:
    """How many ensembles run inside each other here."""
    return sum(1 for principal in context.principals if principal.startswith(_PREFIX))


def inner_id(caller: CallContext) -> str:
    """The id of the run that an attempt of a step makes: the same whenever it is made again."""
    place = f"{caller.run}/{caller.step}/{caller.attempt}"
    return f"{caller.root}.{hashlib.sha256(place.encode()).hexdigest()[:12]}"


async def run_ensemble(
    ensemble: Ensemble,
    inputs: Labelled[dict[str, Any]] | None = None,
    *,
    services: Services,
    context: CallContext | None = None,
    timeout: float | None = None,
) -> Run:
    """Run an ensemble to its end. Raises InputError, SpecError and StepError before anything starts."""
    made = prepared(ensemble, inputs, services=services, context=context, timeout=timeout)
    return await made.run()


def _key(
    ensemble: Ensemble,
    planned: Plan,
    beside: list[str],
    inputs: Labelled[Any],
    context: CallContext,
    now: float,
) -> str:
    """What the ensemble's cache keeps its result under; empty where it keeps none."""
    if ensemble.cache is None:
        return ""
    by = inputs
    if ensemble.cache.key is not None:
        try:
            by = ensemble.cache.key.evaluate(Scope({"input": inputs}, now=now))
        except ExpressionError:
            return ""
    label = inputs.whole.join(by.whole)
    return key_of(context.principals, ensemble.name, planned.digest(), beside, by.value, label=label)
