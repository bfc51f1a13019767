"""`storage`: values by key and files, kept by the project with their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.taint import Labelled
from luthier.tools import delivered
from luthier.uri import ToolUri
from luthier.workflows.operations.own import call_of, called
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import StorageConfig
    from luthier.workflows.operations.attempt import Attempt


async def perform(attempt: Attempt, config: StorageConfig) -> Outcome:
    """Do it; what is not there is an answer too. The output is the tool's."""
    given = attempt.evaluate(config.arguments)
    arguments = Labelled(delivered(given.value), given.label, given.parts)
    attempt.harmless = config.action != "append"
    answer = await called(attempt, call_of(attempt, ToolUri.builtin(f"storage/{config.type}"), arguments))
    if isinstance(answer, Outcome):
        return answer
    return Outcome(output=Labelled(answer.content, answer.label), label=answer.label)
