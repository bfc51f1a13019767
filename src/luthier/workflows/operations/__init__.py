"""What a step can do: each operation takes an attempt and gives an outcome.

An operation may also raise: an exception is a failure of its kind, and a cancellation is passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec import (
    ApiConfig,
    CodeConfig,
    EndorseConfig,
    EnsembleConfig,
    StorageConfig,
    ThinkConfig,
    ToolsConfig,
)
from luthier.workflows.operations import api, code, endorse, ensemble, storage, think, tools, transform
from luthier.workflows.operations.attempt import Attempt, failure_of

if TYPE_CHECKING:
    from luthier.workflows.retries import Outcome

__all__ = ["Attempt", "failure_of", "perform"]


async def perform(attempt: Attempt) -> Outcome:
    """Do what the step says."""
    match attempt.step.config:
        case ToolsConfig() as config:
            return await tools.perform(attempt, config)
        case CodeConfig() as config:
            return await code.perform(attempt, config)
        case EnsembleConfig() as config:
            return await ensemble.perform(attempt, config)
        case EndorseConfig() as config:
            return endorse.perform(attempt, config)
        case ThinkConfig() as config:
            return await think.perform(attempt, config)
        case ApiConfig() as config:
            return await api.perform(attempt, config)
        case StorageConfig() as config:
            return await storage.perform(attempt, config)
        case config:
            return transform.perform(attempt, config)
