"""The driver of the machine: it performs commands, appends an entry for each, and tells the observers.

Each attempt is a task of its own. Whatever ends an attempt, and every timer, leads to the same place: an
entry is appended, and the commands that now stand are performed. The driver decides nothing that the record
does not show.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import LuthierError
from luthier.expr import Scope
from luthier.taint import TRUSTED, Labelled
from luthier.workflows.delivery import deliver, instead, memory_of
from luthier.workflows.ending import CANCELLED
from luthier.workflows.fields import with_state
from luthier.workflows.hand import Hand
from luthier.workflows.judging import answer, asked
from luthier.workflows.machine import Cancel, Command, End, Finish, Judge, Rest, Start, decide, settle
from luthier.workflows.operations import Attempt, failure_of
from luthier.workflows.record import NULL, Failure, RunEnded, RunHalted, StepEnded, StepStarted
from luthier.workflows.resuming import at_work, began
from luthier.workflows.retries import Outcome
from luthier.workflows.run import Run, run_of
from luthier.workflows.scope import RunScope, fixed_names, label_named
from luthier.workflows.scores import last_score
from luthier.workflows.telling import Teller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Timer
    from luthier.context import CallContext
    from luthier.workflows.operations.attempt import Play
    from luthier.workflows.progress import Progress
    from luthier.workflows.record import Resumed
    from luthier.workflows.recorder import RunRecorder
    from luthier.workflows.services import Services

CALLED_OFF = Failure(kind="cancelled", message="called off")

_OF_THE_RUN = (Finish, Rest)

LAST = 1.1
"""How long `finally` may take after a stop, in graces; what is called off then has a tenth of one."""


class Driver:
    """Drives one run, once. `context` is the run's own, `grace` the seconds that a step has to let go.

    `play` runs an ensemble inside this one.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        inputs: Labelled[Any],
        services: Services,
        *,
        context: CallContext,
        grace: float,
        play: Play,
    ) -> None:
        self._recorder = recorder
        self._plan = plan = recorder.plan
        self._state = recorder.state
        self._append = recorder.append
        self._journal = recorder.journal
        self._inputs = inputs
        self._services = services
        self._clock = services.clock
        self._context = context
        self._now = now = recorder.now
        self._grace = grace
        self._play = play
        self._teller = Teller(services.observers, plan, context.run)
        self._hands: dict[str, Hand] = {}
        self._resting: dict[str, Timer] = {}
        self._rested: set[str] = set()
        self._began: dict[str, float] = {}
        self._last_call: float | None = None  # when `finally` is called off too
        self._last_timer: Timer | None = None
        self._started = self._clock.monotonic()
        self._done: asyncio.Future[RunEnded | None] = asyncio.get_running_loop().create_future()
        run = {"id": context.run, "ensemble": plan.ensemble, "started": now}
        names = fixed_names(inputs, run, services.environ, services.project.expose_env)
        self._names = names | {"__cache_hit": Labelled(value=False)}
        self._cached = False
        self._to_end = False
        self._leaving: asyncio.Future[None] | None = None  # done when all hands have let go
        self.decided: Mapping[str, Resumed] = {}  # since the run was left, by step
        self._types: dict[str, Any] = {}
        self._view = RunScope(self._names, self._state)
        self._scope = Scope(self._view, now=now)

    def share(self, state: Labelled[Any], types: Mapping[str, Any]) -> None:
        """What the steps share: what it begins with, and of what types its fields are."""
        self._names["state"] = state
        self._types = dict(types)

    async def run(self, remembered: Labelled[Any] | None = None) -> Run:
        """The run, when it has ended. Cancelled, it ends first, within the grace of its steps.

        `remembered` are the steps that the outputs name, as they ended in an earlier run: none is run then.
        """
        if remembered is not None:
            self._cached = True
            members = remembered.value.items()
            self._names |= {name: remembered.member(name, value) for name, value in members}
            self._names["__cache_hit"] = Labelled(value=True)
        timer = self._arm_deadline()
        if self._journal is not None:
            self._journal.ledger.hear(self._broken)
        try:
            self._guarded(self._go_on if self._recorder.past else self._begin)
            ended = await asyncio.shield(self._done)
            if self._journal is not None:
                await self._journal.written()
        except asyncio.CancelledError:
            if self._journal is not None and (self._journal.leaving or not self._recorder.parent):
                self._journal.ledger.leaving = True
                await self._leave()
                raise
            self.cancel()
            await asyncio.shield(self._done)  # the hands end it: each has its grace
            raise
        finally:
            for one in (timer, self._last_timer):
                if one is not None:
                    one.cancel()
            self._drop_all()
            if self._journal is not None:
                self._journal.ledger.forget(self._broken)
            self._recorder.keep()
        await self._recorder.kept()
        return run_of(self._context, self._state, ended, self._recorder.entries)

    def cancel(self) -> None:
        """End the run from outside, as `run` does when it is cancelled; `run` then returns."""
        self._to_end = True
        if self._recorder.entries:  # else it ends as soon as it has begun
            self._guarded(self._halt, CANCELLED)

    # Beginning and end.

    def _begin(self) -> None:
        self._teller.run_began(self._now, self._recorder.parent)
        deadline = self._context.deadline
        self._recorder.start(self._inputs, None if deadline is None else self._now + deadline - self._started)
        if self._cached:
            self._finish(Finish())
        elif self._to_end:
            self._halt(CANCELLED)
        else:
            self._advance()

    def _go_on(self) -> None:
        """Fold what happened, and begin what was at work anew; what was called off has ended meanwhile."""
        past = self._recorder.past
        self._recorder.recall()
        if self._state.ended is not None:
            self._done.set_result(self._state.ended)
            return
        self._teller.run_began(self._now, self._recorder.parent)
        ago = self._clock.now() - self._clock.monotonic()
        self._started = self._now - ago
        self._began = {key: at - ago for key, at in began(past).items()}
        if self._to_end and self._state.stopped is None:
            self._append(RunHalted(error=CANCELLED))
        if self._state.stopped is not None:
            self._arm_last(self._state.stopped)
        for progress, called in at_work(self._state, past):
            if progress.called_off:
                outcome = Outcome(error=CALLED_OFF, label=progress.control, cancelled=True)
                self._settle(progress.key, progress.attempt, outcome)
            else:
                self._hands[progress.key] = self._hand(progress.key, progress.attempt, lost=called)
        for step, decided in self.decided.items():
            if step in self._state.suspended and self._state.stopped is None:
                self._append(decided, step, self._state.nodes[step].attempt)
        self._advance()

    async def _leave(self) -> None:
        """The process stops: let all steps go and leave the run as it is, for whoever goes on with it."""
        self._leaving = asyncio.get_running_loop().create_future()
        for timer in self._resting.values():
            timer.cancel()
        for hand in tuple(self._hands.values()):
            hand.cancel("cancelled")
        if self._hands:
            await self._leaving
        await self._recorder.release()

    def _broken(self, fault: LuthierError) -> None:
        """What happens cannot be written any more, so nothing more may happen."""
        if not self._done.done() and self._leaving is None:
            self._done.set_exception(fault)

    def memory(self) -> Labelled[Any] | None:
        """What the outputs name, to be remembered; None where a step among it failed."""
        return memory_of(self._state, self._view)

    def _arm_deadline(self) -> Timer | None:
        if self._context.deadline is None:
            return None
        seconds = self._context.deadline - self._clock.monotonic()
        error = Failure(kind="timeout", message="the deadline of the run has passed")
        return self._clock.call_later(max(seconds, 0.0), lambda: self._guarded(self._halt, error))

    def _halt(self, error: Failure) -> None:
        """Stop. What stands under `finally` has a little longer than the steps that are called off."""
        if self._state.ended is not None or self._state.stopped is not None or self._leaving is not None:
            return
        self._append(RunHalted(error=error))
        self._arm_last(error)
        self._advance()

    def _arm_last(self, error: Failure) -> None:
        last = self._grace * LAST
        self._last_call = self._clock.monotonic() + last
        self._last_timer = self._clock.call_later(last, lambda: self._guarded(self._end_all, error))

    def _end_all(self, error: Failure) -> None:
        self._append(RunHalted(error=error))
        self._advance()

    def _finish(self, finish: Finish) -> None:
        error, step, output, response = finish.error, finish.step, NULL, NULL
        if error is None:
            output, response, error = deliver(self._plan, self._scope)
        elif finish.label is not TRUSTED:
            output = Labelled(None, finish.label)
        output = output.joined(self._context.control)
        duration = (self._clock.monotonic() - self._started) * 1000
        ended = RunEnded(
            success=error is None,
            output=output,
            error=error,
            step=step,
            duration=duration,
            response=response.joined(self._context.control),
            cached=self._cached,
        )
        self._recorder.end(ended)
        self._teller.run_done(self._recorder.entries[-1].at, ended)
        self._done.set_result(ended)

    def _rest(self) -> bool:
        """Leave the run as it is: nothing of it goes on before somebody has decided."""
        if self._done.done():
            return False
        self._recorder.rest()
        self._teller.run_rests(self._clock.now(), (self._clock.monotonic() - self._started) * 1000)
        self._done.set_result(None)
        return True

    def _drop_all(self) -> None:
        """What is still at work here was cut off by a second cancellation, or by a fault of ours."""
        for timer in self._resting.values():
            timer.cancel()
        for hand in self._hands.values():
            hand.drop()

    # Doing what the machine says.

    def _guarded(self, action: Any, *arguments: Any) -> None:
        """Act; a fault of ours ends the run with that exception instead of leaving it hanging."""
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  (given to whoever awaits the run)
            if not self._done.done():
                self._done.set_exception(error)

    def _advance(self) -> None:
        """Perform what stands until nothing new does. A command may fall because of one before it."""
        moved = True
        while moved and self._state.agenda:
            moved = False
            for command in decide(self._state):
                key = "" if isinstance(command, _OF_THE_RUN) else command.step
                if self._state.agenda.get(key) is command and self._perform(command):
                    moved = True
        if self._journal is not None:
            self._journal.flush()

    def _perform(self, command: Command) -> bool:
        """Whether anything was done: what is in hand already is not done again."""
        match command:
            case Start():
                return self._start(command)
            case End(step=key, data=data):
                self._end(key, data)
            case Judge():
                self._judge(command)
            case Cancel(step=key):
                grace = self._grace * (LAST - 1) if self._state.over else self._grace
                return self._hands[key].cancel("cancelled", grace)
            case Rest():
                return self._rest()
            case _:
                self._finish(command)
        return True

    def _judge(self, judge: Judge) -> None:
        progress = self._state.nodes[judge.step]
        compiled = asked(progress.node, judge.what)
        scope = self._scope_of(progress)
        try:
            self._append(answer(judge.what, compiled.evaluate(scope), progress.node.cases), judge.step)
        except (LuthierError, RecursionError) as error:
            outcome = Outcome(error=failure_of(error), label=label_named(compiled, scope.values))
            self._settle(judge.step, 0, outcome)

    def _scope_of(self, progress: Progress) -> Scope:
        view = self._view.seen_from(progress)
        return self._scope if view is self._view else Scope(view, now=self._now)

    def _start(self, command: Start) -> bool:
        key, now = command.step, self._clock.now()
        if command.due and key not in self._rested:
            if key in self._resting:
                return False
            wait = max(command.due - now, 0.0)
            self._resting[key] = self._clock.call_later(wait, lambda: self._wake(key))
            return True
        self._rested.discard(key)
        progress = self._state.nodes[key]
        self._began.setdefault(key, self._clock.monotonic())
        self._append(StepStarted(), key, command.attempt)
        self._teller.step_began(now, progress, command.attempt)
        if progress.node.step is not None:
            self._hands[key] = self._hand(key, command.attempt)
        return True

    def _wake(self, key: str) -> None:
        del self._resting[key]
        self._rested.add(key)
        self._guarded(self._advance)

    def _hand(self, key: str, number: int, *, lost: bool = False) -> Hand:
        progress = self._state.nodes[key]
        step = self._plan.step(progress.node.key)
        deadline = self._context.deadline if self._last_call is None else self._last_call
        if step.timeout is not None:
            own = self._clock.monotonic() + step.timeout
            deadline = own if deadline is None else min(own, deadline)
        context = msgspec.structs.replace(
            self._context,
            step=key,
            attempt=number,
            deadline=deadline,
            control=progress.control,
        )
        attempt = Attempt(
            step,
            number=number,
            context=context,
            scope=self._scope_of(progress),
            inputs=self._inputs,
            services=self._services,
            tell=lambda data: self._append(data, key, number),
            play=self._play,
            waited=progress.suspended,
            resumed=progress.resumed,
        )
        if self._journal is not None:
            attempt.written = self._journal.written
        attempt.lost = lost
        if step.scoring is not None:
            attempt.scored_before = last_score(self._recorder.entries, key)
        return Hand(attempt, self._clock, self._grace, lambda outcome: self._let_go(key, number, outcome))

    def _let_go(self, key: str, number: int, outcome: Outcome) -> None:
        del self._hands[key]
        self._guarded(self._settle_and_advance, key, number, outcome)

    def _settle_and_advance(self, key: str, number: int, outcome: Outcome) -> None:
        if self._leaving is None:
            self._settle(key, number, outcome)
            self._advance()
            return
        if not outcome.cancelled:  # it ended by itself meanwhile
            self._settle(key, number, outcome)
        if not self._hands:
            self._leaving.set_result(None)

    def _settle(self, key: str, number: int, outcome: Outcome) -> None:
        data = settle(self._state, key, outcome)
        if isinstance(data, StepEnded):
            progress = self._state.nodes[key]
            step = progress.node.step
            if step is not None and (step.on_timeout is not None or step.state is not None):
                scope = self._scope_of(progress)
                if self._state.stopped is None:
                    data = instead(progress.node, data, scope)
                data = with_state(progress, data, outcome, scope, self._types)
            self._end(key, data)
        else:
            self._append(data, key, number)

    def _end(self, key: str, data: StepEnded) -> None:
        if key in self._resting:
            self._resting.pop(key).cancel()
        began = self._began.get(key)
        if began is not None:
            data = msgspec.structs.replace(data, duration=(self._clock.monotonic() - began) * 1000)
        self._append(data, key, self._state.nodes[key].attempt)
        self._teller.step_done(self._recorder.entries[-1].at, key, data)
