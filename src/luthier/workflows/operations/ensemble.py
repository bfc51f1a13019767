"""`ensemble`: another ensemble, run inside; its output is the step's, its failure too, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.workflows.record import Failure, Suspended
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import EnsembleConfig
    from luthier.workflows.operations.attempt import Attempt
    from luthier.workflows.run import Run


def suspended_in(run: Run) -> Suspended:
    """The step waits as long as one of the run inside does."""
    return Suspended(
        what="run",
        run=run.id,
        requests=tuple(id for one in run.suspended for id in one.requests),
        prompt="; ".join(one.prompt for one in run.suspended),
        expires=min(one.expires_at or 0.0 for one in run.suspended),
    )


async def perform(attempt: Attempt, config: EnsembleConfig) -> Outcome:
    """Run it to its end; labels and deadline travel with the context. Raises NotFoundError and InputError."""
    child = attempt.services.ensembles(config.ensemble)
    given = attempt.given()
    attempt.harmless = False
    await attempt.committed()
    run = await attempt.play(child, given, attempt.context)
    if run.suspended:
        return Outcome(suspended=suspended_in(run))
    if run.error is None:
        return Outcome(output=run.labelled, label=run.label)
    error = dict(run.error)
    where = f" at step {error['step']}" if error.get("step") else ""
    failure = Failure(
        kind=error.pop("kind"),
        message=f"ensemble {child.name} failed{where}: {error.pop('message')}",
        facts={**error, "run": run.id, "ensemble": child.name},
        note=run.note,
    )
    return Outcome(error=failure, label=attempt.label.join(run.label))
