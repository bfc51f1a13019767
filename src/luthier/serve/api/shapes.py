"""What is asked and answered: requests are read with these models, the OpenAPI document is made of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from luthier.workflows.runs import Status

When = Annotated[datetime, Meta(tz=True)]
Text = Annotated[str, Meta(max_length=10_000)]


class RunBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is given. `input` says the same as `inputs`; `timeout` is milliseconds for all of it.

    `durable`: it can be resumed, and waits for people without a process.
    """

    inputs: dict[str, Any] | UnsetType = UNSET
    input: dict[str, Any] | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0, le=86_400_000)] | None = None
    durable: bool = False


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs are listed; `before` is the id of the last one of the page before.

    `nested`: those that were begun inside of others are listed too.
    """

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    status: Status | UnsetType = UNSET
    ensemble: str | UnsetType = UNSET
    before: str | UnsetType = UNSET
    nested: bool = False


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """How far a value is to be trusted, who may see it, and where it came from (`server:tool`)."""

    integrity: Literal["trusted", "untrusted"]
    confidentiality: Literal["public", "private", "secret"]
    sources: list[str]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed: the kind, and the words where they are the caller's to know."""

    kind: str
    message: str = ""
    step: str = ""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a suspended run waits for: one of these approvals, which are decided by their ids."""

    step: str
    what: Literal["hitl", "approval", "input", "run"]
    approvals: list[str] = []
    expires_at: When | None = None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its caller sees it. `output` is left out while there is none, and where it holds a secret.

    `response` is the status and the headers of an ensemble whose outputs are blocks.
    """

    id: str
    ensemble: str
    status: Status
    success: bool
    client: str
    parent: str = ""
    durable: bool = False
    started_at: When | None = None
    ended_at: When | None = None
    waiting: list[Waiting] = []
    output: Any = UNSET
    withheld: bool = False
    response: dict[str, Any] | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class RunsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first. `next`: what `before` of the next page is; null where there is none."""

    runs: list[RunView]
    next: str | None = None


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened in a run, an entry each, as `luthier runs show --json` tells it."""

    entries: list[msgspec.Raw]


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A token that decides once in place of whoever may, and where it is taken."""

    token: str
    path: str


class DecisionBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person says to a request: the answer, where the question wants one, and why."""

    answer: Any = UNSET
    reason: Text = ""


class CallbackBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says by the token that they were sent. `approver` is what they call themselves."""

    approved: bool
    answer: Any = UNSET
    feedback: Any = UNSET
    reason: Text = ""
    approver: Annotated[str, Meta(max_length=200)] = ""


class ArgumentView(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf of what a request is about: where it stands, and its JSON text made safe to show."""

    at: str
    shown: str


class ApprovalView(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a person: a call, a question of a step (`hitl`), or what a server asks back (`input`).

    `schema`: what an answer must fit; null where it is yes or no. `more`: arguments that are not shown.
    """

    id: str
    what: Literal["call", "hitl", "input"]
    state: Literal["waiting", "approved", "denied", "expired"]
    client: str
    run: str
    step: str
    uri: str
    prompt: str
    reason: str
    arguments: list[ArgumentView]
    more: int = 0
    schema: dict[str, Any] | None = None
    asked_at: When
    expires_at: When
    by: str = ""


class ApprovalsView(msgspec.Struct, frozen=True, kw_only=True):
    approvals: list[ApprovalView]


class EnsembleView(msgspec.Struct, frozen=True, kw_only=True):
    """An ensemble that the caller may run, with the schema of its inputs."""

    name: str
    description: str
    input_schema: dict[str, Any]


class EnsemblesView(msgspec.Struct, frozen=True, kw_only=True):
    ensembles: list[EnsembleView]


class FaultView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a request, in the words of the command line."""

    message: str
    suggestion: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was not done. Nothing was started."""

    error: str
    message: str
    faults: list[FaultView] = []
