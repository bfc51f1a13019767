"""What the machine asks of its driver."""

from __future__ import annotations

from typing import Literal

import msgspec

from luthier.taint import TRUSTED, Label
from luthier.workflows.record import Failure, StepEnded

What = Literal["condition", "value", "items", "break"]


class Judge(msgspec.Struct, frozen=True):
    """Read what a step goes by, and append BranchTaken or, for `items`, ItemsRead.

    Where it cannot be read, append what `settle` makes of that.
    """

    step: str
    what: What = "condition"


class Start(msgspec.Struct, frozen=True):
    """Append StepStarted and begin the attempt, once `due` (Unix seconds) has come. A group only starts."""

    step: str
    attempt: int = 1
    due: float = 0.0


class Cancel(msgspec.Struct, frozen=True):
    """Call the running step off; it ends as `settle` says when it has let go."""

    step: str


class End(msgspec.Struct, frozen=True):
    """Append this end: of a step that is skipped, or of a group whose members have ended."""

    step: str
    data: StepEnded


class Finish(msgspec.Struct, frozen=True):
    """All has ended. Without a failure the outputs are to be read; append RunEnded."""

    error: Failure | None = None
    step: str = ""
    label: Label = TRUSTED


class Rest(msgspec.Struct, frozen=True):
    """Nothing can go on before somebody outside decides; each of these steps waits for that."""

    steps: tuple[str, ...]


Command = Judge | Start | Cancel | End | Finish | Rest
