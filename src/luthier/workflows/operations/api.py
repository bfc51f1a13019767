"""`api` and `http`: one request; `{status, ok, headers, body, encoding}` is the output of a success.

An answer that is no success fails the step, unless the step takes its status as data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.outside.request import REPEATABLE
from luthier.outside.response import excerpt
from luthier.spec import web_rules
from luthier.taint import Labelled
from luthier.text import one_line
from luthier.tools import delivered
from luthier.uri import ToolUri
from luthier.web import shown
from luthier.workflows.operations.own import call_of, called
from luthier.workflows.record import Failure
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from luthier.spec import ApiConfig
    from luthier.tools import ToolResult
    from luthier.workflows.operations.attempt import Attempt

_URI = ToolUri.builtin("http")


async def perform(attempt: Attempt, config: ApiConfig) -> Outcome:
    """Send the request. A lost reply is `unknown`, and asked for again only where that does nothing twice."""
    given = attempt.evaluate(config.request)
    arguments = Labelled(delivered(given.value), given.label, given.parts)
    attempt.harmless = config.method in REPEATABLE if config.idempotent is None else config.idempotent
    rules = web_rules(config, attempt.services.project)
    call = call_of(attempt, _URI, arguments, timeout=config.timeout, web=rules)
    answer = await called(attempt, call)
    if isinstance(answer, Outcome):
        return answer
    found = answer.content
    if found["ok"] or config.allow_status is None or found["status"] in config.allow_status:
        return Outcome(output=Labelled(found, answer.label), label=answer.label)
    return _no_success(config, arguments.value, answer)


def _no_success(config: ApiConfig, asked: dict[str, Any], answer: ToolResult) -> Outcome:
    from luthier.wire.http.facts import retry_after  # what speaks HTTP is loaded by those who do

    found: dict[str, Any] = answer.content
    said = excerpt(found)
    wait = retry_after(found["headers"].get("retry-after", ""))
    message = f"{config.method} {shown(asked['url'])} answered HTTP {found['status']}"
    failure = Failure(
        kind="protocol",
        message=f"{message}: {one_line(said, 300)}" if said else message,
        facts={"status": found["status"], "retry_after": wait, "excerpt": said},
    )
    return Outcome(error=failure, label=answer.label, status=found["status"], retry_after=wait)
