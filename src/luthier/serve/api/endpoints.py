"""The endpoints of the HTTP API: one table, from which the routes and the OpenAPI document are made."""

from __future__ import annotations

from typing import Any

import msgspec

from luthier.serve.api import shapes

API = "/api/v1"

JSON = "application/json"
EVENTS = "text/event-stream"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`work`: the method that does it. `role`: what its caller must be. `answers`: a model by each status.

    `public`: no token is asked for. `streams`: it tells events too, to who accepts them.
    """

    method: str
    path: str
    work: str
    summary: str
    role: str = ""
    body: type[Any] | None = None
    query: type[Any] | None = None
    answers: dict[int, Any]
    public: bool = False
    streams: bool = False


_ABSENT = {404: shapes.Problem}
_MANY = {429: shapes.Problem}
_BAD = {400: shapes.Problem, 413: shapes.Problem, 415: shapes.Problem}

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=f"{API}/ensembles",
        work="ensembles",
        summary="The ensembles that the caller may run.",
        role="run",
        answers={200: shapes.EnsemblesView},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/ensembles/{{name}}",
        work="ensemble",
        summary="One ensemble, with the schema of its inputs.",
        role="run",
        answers={200: shapes.EnsembleView, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/ensembles/{{name}}/run",
        work="run",
        summary="Run an ensemble and wait for it; with `Prefer: respond-async` it goes on by itself.",
        role="run",
        body=shapes.RunBody,
        answers={200: shapes.RunView, 202: shapes.RunView, **_BAD, **_ABSENT, **_MANY},
        streams=True,
    ),
    Endpoint(
        method="POST",
        path=f"{API}/ensembles/{{name}}/run/async",
        work="run_async",
        summary="Run an ensemble, which goes on by itself.",
        role="run",
        body=shapes.RunBody,
        answers={202: shapes.RunView, **_BAD, **_ABSENT, **_MANY},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/runs",
        work="runs",
        summary="The caller's runs, the newest first; all runs for the role admin.",
        query=shapes.RunsQuery,
        answers={200: shapes.RunsPage, 400: shapes.Problem},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/runs/{{id}}",
        work="run_of",
        summary="One run: how it stands, and what it delivered.",
        answers={200: shapes.RunView, **_ABSENT},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/runs/{{id}}/events",
        work="events",
        summary="The steps of a run as server-sent events, from its first one on; the last is `end`.",
        answers={**_ABSENT},
        streams=True,
    ),
    Endpoint(
        method="GET",
        path=f"{API}/runs/{{id}}/record",
        work="record",
        summary="What happened in a run, with the values.",
        role="admin",
        answers={200: shapes.RecordView, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/runs/{{id}}/cancel",
        work="cancel",
        summary="End a run.",
        answers={202: shapes.RunView, 409: shapes.Problem, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/runs/{{id}}/resume",
        work="resume",
        summary="Go on with a durable run that was cut off, or whose requests have been decided.",
        role="run",
        answers={202: shapes.RunView, 409: shapes.Problem, **_ABSENT},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/approvals",
        work="approvals",
        summary="What waits for a person and is for the caller to decide.",
        answers={200: shapes.ApprovalsView},
    ),
    Endpoint(
        method="GET",
        path=f"{API}/approvals/{{id}}",
        work="approval",
        summary="One request.",
        answers={200: shapes.ApprovalView, 403: shapes.Problem, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/approvals/{{id}}/approve",
        work="approve",
        summary="Say yes, or give the answer that is asked for.",
        body=shapes.DecisionBody,
        answers={200: shapes.ApprovalView, 403: shapes.Problem, 409: shapes.Problem, **_BAD, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/approvals/{{id}}/reject",
        work="reject",
        summary="Say no.",
        body=shapes.DecisionBody,
        answers={200: shapes.ApprovalView, 403: shapes.Problem, 409: shapes.Problem, **_BAD, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path=f"{API}/approvals/{{id}}/token",
        work="token",
        summary="A token that decides once in the caller's place; one that was given out before is void.",
        answers={200: shapes.TokenView, 403: shapes.Problem, 409: shapes.Problem, **_ABSENT},
    ),
    Endpoint(
        method="POST",
        path="/callback/{token}",
        work="callback",
        summary="Decide by the token of one request, which is good once.",
        body=shapes.CallbackBody,
        answers={200: shapes.ApprovalView, 403: shapes.Problem, 410: shapes.Problem, **_BAD},
        public=True,
    ),
)
