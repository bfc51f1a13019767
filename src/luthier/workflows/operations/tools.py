"""`tools`: one governed call of one tool of an MCP server.

A tool's own error is an answer: the step succeeds and `isError` says so. A refusal fails the step with the
refusal's kind, a fault of the wire with the fault's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import (
    ConnectError,
    HttpError,
    LuthierError,
    NotFoundError,
    UnresolvedReferenceError,
    WireError,
)
from luthier.taint import UNTRUSTED, Label, Labelled, Source, merge
from luthier.tools import Refusal, ToolCall, delivered
from luthier.uri import ToolUri
from luthier.workflows.operations.asking import in_rounds
from luthier.workflows.operations.calls import refused, status_of
from luthier.workflows.operations.schemas import is_open, names_of
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import ServerEntry, ToolsConfig
    from luthier.workflows.operations.attempt import Attempt


async def perform(attempt: Attempt, config: ToolsConfig) -> Outcome:
    """Make the call; the outcome's output is the envelope."""
    uri = ToolUri.mcp(config.server, config.tool)
    entry = attempt.services.project.servers.get(config.server)
    try:
        age = config.cache_ttl if config.cache_discovery else None
        arguments = await _arguments(attempt, uri, age)
        attempt.harmless = await _is_harmless(attempt, uri, entry)
        call = ToolCall(
            id=f"{attempt.context.run}/{attempt.context.step}/{attempt.number}",
            uri=uri,
            arguments=arguments,
            context=attempt.context,
            timeout=config.timeout,
            list_age=age,
        )
        answer = await in_rounds(attempt, call)
    except WireError as error:
        return _fault(attempt, error, attempt.label.join(_origin(entry, uri)))
    except NotFoundError as error:
        return attempt.failed(error, label=attempt.label.join(_origin(entry, uri)))
    except UnresolvedReferenceError as error:
        return attempt.failed(error, hopeless=True)
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, Refusal):
        return refused(attempt, answer, _origin(entry, uri))
    return Outcome(output=Labelled(answer.envelope, answer.label), label=answer.label)


async def _arguments(attempt: Attempt, uri: ToolUri, age: float | None) -> Labelled[dict[str, Any]]:
    """The step's own inputs; else those of the ensemble's that the tool's schema names.

    An open schema that names none gets them all.
    """
    given = attempt.given()
    if attempt.step.inputs is not None:
        return Labelled(delivered(given.value), given.label, given.parts)
    tool = await attempt.services.gateway.tool(uri, attempt.context, list_age=age)
    named = names_of(tool.input_schema)
    if not named and is_open(tool.input_schema):
        return Labelled(delivered(given.value), given.label, given.parts)
    return _only(given, named)


def _only(given: Labelled[dict[str, Any]], names: frozenset[str]) -> Labelled[dict[str, Any]]:
    chosen = {key: given.member(key, delivered(value)) for key, value in given.value.items() if key in names}
    return merge(chosen)


async def _is_harmless(attempt: Attempt, uri: ToolUri, entry: ServerEntry | None) -> bool:
    """Whether the call may be made twice: by the operator's word, or by that of a trusted server."""
    if entry is None or (attempt.step.retry is None and not attempt.lost):
        return False
    if uri.name in entry.tools.idempotent or uri.name in entry.tools.read_only:
        return True
    if not entry.trusted:
        return False
    try:
        hints = (await attempt.services.gateway.tool(uri, attempt.context)).annotations
    except LuthierError:
        return False
    return hints.get("idempotentHint") is True or hints.get("readOnlyHint") is True


def _fault(attempt: Attempt, error: WireError, label: Label) -> Outcome:
    failed = attempt.failed(
        error,
        label=label,
        harmless=attempt.harmless or not error.sent or error.phase != "call",
        hopeless=isinstance(error, ConnectError) and not error.retryable,
        status=status_of(error),
        retry_after=error.retry_after if isinstance(error, HttpError) else None,
    )
    if failed.error is not None and failed.error.kind == "unknown" and error.phase != "call":
        # What was lost is a question about the tools; the call itself was never made.
        failure = msgspec.structs.replace(failed.error, kind="connect")
        return msgspec.structs.replace(failed, error=failure)
    return failed


def _origin(entry: ServerEntry | None, uri: ToolUri) -> Label:
    """The label of what a server says when it fails, and of its own words in what we say of it."""
    label = UNTRUSTED if entry is None else entry.trust
    return label.join(Label(sources=frozenset({Source(uri.server, uri.name)})))
