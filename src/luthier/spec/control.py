"""The written order of an ensemble as frozen values: places of steps, and the control steps around them.

Every control step has a `name` in expressions: its own `id` if it has one, else `<type>_<index>`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from luthier.expr import Compiled

Backoff = Literal["exponential", "linear", "fixed"]
WaitFor = Literal["all", "any", "first"]
OnLow = Literal["retry", "continue", "abort"]
Aggregation = Literal["weighted_average", "minimum", "geometric_mean"]

ITERATIONS = 1000
"""How often a `while` runs at most, where it does not say."""

CONCURRENCY = 100
"""How many items of a loop are in work at once, where it does not say."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a step is tried in all, and the waits between. `retry_on`: statuses and error kinds."""

    max_attempts: int = 3
    backoff: Backoff = "exponential"
    initial_delay: float = 1.0
    max_delay: float = 30.0
    retry_on: tuple[int | str, ...] = (500, 502, 503, 504)


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds a result is kept. `key` None: by all that was given."""

    ttl: float
    key: Compiled | None = None


class OnTimeout(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a step that took too long: `fallback` is its output, or `error` its message."""

    fallback: Compiled | None = None
    error: str = ""


class StepState(msgspec.Struct, frozen=True, kw_only=True):
    """What of the run's state a script reads and may write; `values` are written after the step."""

    use: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    values: Compiled | None = None


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Scores from 0 to 1. Below `minimum` the output will not do; the others are for people."""

    minimum: float
    target: float | None = None
    excellent: float | None = None


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """How one step is judged. None: as the ensemble says. `judge` is its evaluator's Step, once known."""

    evaluator: str
    thresholds: Thresholds | None = None
    criteria: Compiled | None = None
    on_failure: OnLow = "retry"
    retry_limit: int | None = None
    improvement: float | None = None  # how much more than before each further attempt must reach
    judge: Any = None


class RunScoring(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all steps that are judged, and how their scores become one."""

    enabled: bool = True
    thresholds: Thresholds = Thresholds(minimum=0.7)
    criteria: Compiled | None = None
    retry_limit: int = 3
    backoff: Backoff = "exponential"
    initial_backoff: float = 1.0
    aggregation: Aggregation = "weighted_average"


class StepSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a step and its place in a flow can say alike. `inputs` None: the ensemble's.

    `timeout` None: no limit of its own.
    """

    inputs: Compiled | None = None
    condition: Compiled | None = None
    depends_on: tuple[str, ...] = ()
    retry: Retry | None = None
    timeout: float | None = None
    on_timeout: OnTimeout | None = None
    cache: Cache | None = None
    state: StepState | None = None
    scoring: Scoring | None = None


class FlowStep(StepSettings, frozen=True, kw_only=True):
    """A place in the written order where a step runs. What is set here wins over the step's own.

    `step` names the definition; `name` is what expressions call this place, the same unless `id` is given.
    """

    step: str
    name: str


class ParallelFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Items that run at the same time."""

    name: str
    steps: tuple[FlowItem, ...]
    wait_for: WaitFor = "all"


class BranchFlow(msgspec.Struct, frozen=True, kw_only=True):
    """One of two sequences, as the condition says."""

    name: str
    condition: Compiled
    then: tuple[FlowItem, ...]
    otherwise: tuple[FlowItem, ...] = ()


class SwitchFlow(msgspec.Struct, frozen=True, kw_only=True):
    """The sequence whose key is the text of the value; `default` where there is none."""

    name: str
    value: Compiled
    cases: dict[str, tuple[FlowItem, ...]]
    default: tuple[FlowItem, ...] = ()


class TryFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence, one for the case that it fails, and one that runs in any case."""

    name: str
    steps: tuple[FlowItem, ...]
    catch: tuple[FlowItem, ...] = ()
    lastly: tuple[FlowItem, ...] = ()


class ForeachFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A body for each item of a list. `lone`: the body is one step, and its output the item's result."""

    name: str
    items: Compiled
    steps: tuple[FlowItem, ...]
    lone: bool = True
    max_concurrency: int = CONCURRENCY
    break_when: Compiled | None = None


class WhileFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A body again and again, while the condition holds."""

    name: str
    condition: Compiled
    steps: tuple[FlowItem, ...]
    max_iterations: int = ITERATIONS


class MapReduceFlow(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the flow for each item of a list, and one for all that came of them."""

    name: str
    items: Compiled
    map: FlowItem
    reduce: FlowItem
    max_concurrency: int = CONCURRENCY


ControlFlow = ParallelFlow | BranchFlow | SwitchFlow | TryFlow | ForeachFlow | WhileFlow | MapReduceFlow
FlowItem = FlowStep | ControlFlow
