"""The ensemble as a frozen value: inputs, steps, flow and outputs, with their expressions already parsed.

Times are seconds; the files write milliseconds. The values are read by `read.py`, never by hand.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from luthier.errors import Fault
from luthier.expr import Compiled
from luthier.spec.control import Cache, FlowItem, RunScoring, StepSettings
from luthier.spec.origin import NOWHERE, Origin
from luthier.spec.outputs import OutputBlock
from luthier.spec.trigger import Trigger

InputType = Literal["string", "number", "integer", "boolean", "array", "object"]
Operation = Literal[
    "tools", "code", "transform", "ensemble", "endorse", "think", "api", "http", "storage", "hitl"
]
TableFormat = Literal["csv", "tsv", "jsonl"]
Unmet = Literal["fail", "continue"]
CoerceType = Literal["string", "number", "boolean", "date"]


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One input. `declared` False: the file gives only a default. `type` None fits every JSON value."""

    type: InputType | None = None
    required: bool = False
    default: Compiled | None = None  # None: without one; it may name `input`
    description: str = ""
    enum: tuple[object, ...] | None = None
    declared: bool = True


class ToolsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool of which server a step calls. `timeout` None: the server's own."""

    server: str
    tool: str
    timeout: float | None = None
    cache_discovery: bool = False
    cache_ttl: float = 300.0


class CodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A script below the project's `scripts/`, written `scripts/a/b.py` whatever spelling the file used."""

    script: str


class EnsembleConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the ensemble that runs inside."""

    ensemble: str


class Sort(msgspec.Struct, frozen=True, kw_only=True):
    """The field of a row that rows are ordered by."""

    by: str
    descending: bool = False


class TransformConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Reshapes a value. One of `value`, `merge` and `input` is set; what follows works on `input`.

    Their order: parse, filter, trim, compact, coerce, defaults, rename, pick, omit, dedupe, sort, offset,
    limit, format.
    """

    value: Compiled | None = None
    merge: Compiled | None = None
    input: Compiled | None = None
    parse: TableFormat | None = None
    filter: str | None = None  # keeps the rows where this field is truthy
    trim: bool = False
    compact: bool = False
    coerce: dict[str, CoerceType] = {}
    defaults: Compiled | None = None
    rename: dict[str, str] = {}
    pick: tuple[str, ...] = ()  # (): every field
    omit: tuple[str, ...] = ()
    dedupe: bool | str = False  # True: by the whole row; text: by that field
    sort: Sort | None = None
    offset: int = 0
    limit: int | None = None
    format: TableFormat | None = None
    columns: tuple[str, ...] = ()  # of a csv or tsv that is written; (): as they come


class EndorseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A value, why it may be trusted, and what it must be: of the closed type as written, or one of `ids`."""

    value: Compiled
    reason: str
    closed: Any = None
    ids: Compiled | None = None


class ThinkConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a model. `provider` empty: told by the model, or the project's only one.

    `schema`: the answer is a value that fits it. `timeout` None: the provider's own.
    """

    provider: str = ""
    schema: dict[str, Any] | None = None
    timeout: float | None = None
    model: Compiled | None = None
    prompt: Compiled | None = None
    system: Compiled | None = None
    messages: Compiled | None = None
    temperature: Compiled | None = None
    max_tokens: Compiled | None = None
    top_p: Compiled | None = None
    frequency_penalty: Compiled | None = None
    presence_penalty: Compiled | None = None
    stop: Compiled | None = None
    seed: Compiled | None = None

    def settings(self) -> dict[str, Compiled]:
        """What is said to the model and about it, by name."""
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: one for name, one in given if isinstance(one, Compiled)}


class ApiConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One request by HTTP. `request` gives the arguments of `builtin://http`.

    `literal` is the address as far as the file spells out where it leads; empty where data decide that.
    `allow_status`: answers that are no success and still are data; None: any. `idempotent` None: as the
    method says.
    """

    request: Compiled
    literal: str = ""
    timeout: float | None = None
    allow_status: tuple[int, ...] | None = ()
    allow_private: bool = False
    idempotent: bool | None = None
    method: str = "GET"


class StorageConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with what is kept. `arguments` are those of the tool `builtin://storage/TYPE`."""

    type: Literal["kv", "files"]
    action: str
    arguments: Compiled


class HitlConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a person, and what they see beside it. `schema` None: it is one of yes or no.

    `approvers` are those who may answer besides the operator: ids of clients, roles, or `caller`, the one
    whose run asks; (): whoever has the role `approve`. What nobody has answered after `timeout` is void.
    """

    prompt: Compiled | None = None
    data: Compiled | None = None
    schema: dict[str, Any] | None = None
    timeout: float = 86_400.0
    approvers: tuple[str, ...] = ()
    on_reject: Unmet = "fail"
    on_timeout: Unmet = "fail"


Config = (
    ToolsConfig
    | CodeConfig
    | TransformConfig
    | EnsembleConfig
    | EndorseConfig
    | ThinkConfig
    | ApiConfig
    | StorageConfig
    | HitlConfig
)


class Step(StepSettings, frozen=True, kw_only=True):
    """One step."""

    name: str
    operation: Operation
    config: Config
    description: str = ""
    origin: Origin = NOWHERE


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that the steps of one run share: the types of its fields, and what they begin with."""

    types: dict[str, InputType | None] = {}
    initial: Compiled | None = None


class Ensemble(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow. `flow` None: steps run as their references allow. `file` empty: made in Python."""

    name: str
    steps: tuple[Step, ...]
    description: str = ""
    file: str = ""
    inputs: dict[str, Input] = {}
    flow: tuple[FlowItem, ...] | None = None
    outputs: Compiled | None = None
    blocks: tuple[OutputBlock, ...] = ()  # in place of outputs
    cache: Cache | None = None
    state: RunState | None = None
    scoring: RunScoring = RunScoring()
    triggers: tuple[Trigger, ...] = ()
    reads_env: dict[str, Fault] = {}  # names read from `env`, and what to say where they are not exposed
    warnings: tuple[Fault, ...] = ()
    origin: Origin = NOWHERE
