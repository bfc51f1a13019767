"""The runs of a project: those that go on, and those that are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import NotFoundError
from luthier.events import Observers
from luthier.workflows import Execution, MemoryRuns

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.context import CallContext
    from luthier.events import Observer
    from luthier.spec import Ensemble
    from luthier.taint import Labelled
    from luthier.workflows import Entry, Run, RunRow, RunStore, Services
    from luthier.workflows.runs import Status


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
    """What `rt.runs` is. `services` is what each run needs, `forget` is told of the end of each."""

    def __init__(self, services: Services, forget: Callable[[str], None]) -> None:
        self._store: RunStore = services.runs or MemoryRuns()
        self._services = services
        self._forget = forget
        self._going: set[asyncio.Task[Run]] = set()

    def list(
        self,
        *,
        limit: int = 50,
        status: Status | None = None,
        ensemble: str | None = None,
        before: str | None = None,
    ) -> tuple[RunRow, ...]:
        """How runs stand, the newest first; `before` is the id of a run that was listed last. StoreError."""
        return self._store.list(limit=limit, status=status, ensemble=ensemble, before=before)

    def get(self, id: str) -> RunRow:
        """How one run stands. Raises NotFoundError and StoreError."""
        row = self._store.row(id)
        if row is None:
            raise NotFoundError("run", id, hint="See which there are: luthier runs list")
        return row

    def record(self, id: str) -> tuple[Entry, ...]:
        """What happened in a run so far. Raises NotFoundError, RecordError and StoreError."""
        self.get(id)
        return self._store.read(id)

    def new_id(self) -> str:
        """An id for a run that is about to be made: the `root` of its context."""
        return self._services.new_id()

    async def play(
        self, ensemble: Ensemble, inputs: Labelled[Any], context: CallContext, *observers: Observer
    ) -> Run:
        """Run to the end. Raises InputError before anything starts."""
        return await self._tracked(self._made(ensemble, inputs, context, *observers))

    def start(
        self, ensemble: Ensemble, inputs: Labelled[Any], context: CallContext, *observers: Observer
    ) -> RunHandle:
        """Begin a run that goes on by itself. Raises InputError before anything starts."""
        made = self._made(ensemble, inputs, context, *observers)
        task = asyncio.get_running_loop().create_task(self._tracked(made))
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return RunHandle(made.id, task, made.cancel)

    async def close(self) -> None:
        """Call off what still goes on, and wait for that."""
        for task in self._going:
            task.cancel()
        if self._going:
            await asyncio.wait(self._going)

    def _made(
        self, ensemble: Ensemble, inputs: Labelled[Any], context: CallContext, *observers: Observer
    ) -> Execution:
        services = self._services
        id = context.root or services.new_id()
        if observers:
            heard = Observers((services.observers, *observers))
            services = msgspec.structs.replace(services, observers=heard)
        context = msgspec.structs.replace(context, root=id)
        return Execution(ensemble, inputs, services=services, context=context, id=id)

    async def _tracked(self, made: Execution) -> Run:
        try:
            return await made.run()
        finally:
            self._forget(made.id)
