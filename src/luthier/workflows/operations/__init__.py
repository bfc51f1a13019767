"""What a step can do: each operation takes an attempt and gives an outcome.

An operation may also raise: an exception is a failure of its kind, and a cancellation is passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import StepError
from luthier.spec import (
    ApiConfig,
    CodeConfig,
    Config,
    EndorseConfig,
    EnsembleConfig,
    HitlConfig,
    StorageConfig,
    ThinkConfig,
    ToolsConfig,
    TransformConfig,
)
from luthier.workflows.operations import api, code, endorse, ensemble, hitl, storage, think, tools, transform
from luthier.workflows.operations.attempt import Attempt, failure_of
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Attempt", "failure_of", "perform"]


_PERFORM: dict[type[Config], Callable[[Attempt, Any], Outcome | Awaitable[Outcome]]] = {
    ToolsConfig: tools.perform,
    CodeConfig: code.perform,
    EnsembleConfig: ensemble.perform,
    EndorseConfig: endorse.perform,
    ThinkConfig: think.perform,
    ApiConfig: api.perform,
    StorageConfig: storage.perform,
    HitlConfig: hitl.perform,
    TransformConfig: transform.perform,
}


async def perform(attempt: Attempt) -> Outcome:
    """Do what the step says. Raises StepError where it waited for somebody in vain."""
    config = attempt.step.config
    resumed = attempt.resumed
    if resumed is not None and resumed.decision == "expired" and not isinstance(config, HitlConfig):
        raise StepError("approval", "nobody has decided in time")
    done = _PERFORM[type(config)](attempt, config)
    return done if isinstance(done, Outcome) else await done
