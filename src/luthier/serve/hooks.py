"""The work behind triggers: a request becomes the input of a run, and what the run delivers the response."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from luthier.errors import AuditError, InputError, LuthierError, StoreError
from luthier.given import given_json
from luthier.redaction import logger
from luthier.serve.answer import sayable
from luthier.serve.api.asking import Ask, Rejected, fault_of, reply, waited
from luthier.serve.api.shapes import Problem
from luthier.serve.api.views import of_ended
from luthier.serve.board import TooManyError
from luthier.serve.triggers import Asked, inputs_of
from luthier.tools.headers import name_fault, value_fault
from luthier.web import form_fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from luthier.serve.board import Live
    from luthier.serve.caller import Caller
    from luthier.serve.replays import Replays
    from luthier.serve.service import Service
    from luthier.serve.triggers import Trigger
    from luthier.workflows import Run

_log = logger("luthier.serve")
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000


def trigger_routes(triggers: Sequence[Trigger], service: Service, replays: Replays) -> list[Route]:
    """A route for each path of each trigger."""
    from starlette.routing import Route

    async def answer(trigger: Trigger, request: Request) -> Response:
        return await _answered(trigger, request, service, replays)

    return [
        Route(path, partial(answer, trigger), methods=list(trigger.spec.methods))
        for trigger in triggers
        for path in trigger.spec.paths
    ]


async def _answered(trigger: Trigger, request: Request, service: Service, replays: Replays) -> Response:
    caller: Caller = request.scope["caller"]
    if trigger.limit and (wait := trigger.limit.wait(caller, request.client.host if request.client else "")):
        problem = Problem(error="Too many requests", message="Come again later.")
        return reply(problem, 429, {"Retry-After": str(ceil(wait))})
    ensemble = service.ensembles.get(trigger.ensemble.name, trigger.ensemble)  # its file may have changed
    spec, ask = trigger.spec, Ask(caller=caller, request=request)
    try:
        inputs = inputs_of(ensemble, await _asked(request))
        async with _once(caller, trigger, service, replays):
            live = service.board.start(
                caller, ensemble, inputs, run_timeout=spec.run_timeout, trace=ask.trace
            )
    except (Rejected, TooManyError, InputError, StoreError, AuditError) as error:
        return fault_of(error, ensemble.name)
    if spec.in_background:
        return reply({"executionId": live.id, "status": "processing"}, 202)
    try:
        run = asyncio.ensure_future(live.handle.wait())
        return response_of(await waited(request, run, live.handle.cancel), live, spec.cache_control)
    except LuthierError as error:
        _log.error("a run of %s for %s broke off: %s", ensemble.name, caller.id, error)
        return reply(Problem(error="Ensemble execution failed", message="The run broke off."), 500)


@asynccontextmanager
async def _once(caller: Caller, trigger: Trigger, service: Service, replays: Replays) -> AsyncIterator[None]:
    """Around the start of a run. Raises Rejected for a signature that has begun one already."""
    proof = caller.proof
    if proof is None:
        yield
        return
    if not await replays.first(proof):
        name, place = trigger.ensemble.name, trigger.place
        _log.warning("refused a request for %s: its signature was used before", name)
        await service.runtime.client(caller.id).refused(f"ensemble:{name}", "signature used before", place)
        raise Rejected(409, "Replayed", "This request was made before: a signature is good once.")
    try:
        yield
    except (TooManyError, InputError):
        await replays.forget(proof)
        raise


def response_of(run: Run, live: Live, cache_control: str = "") -> Response:
    """What a run delivers, as its outputs say: status, headers, a body or a way onward."""
    from starlette.responses import Response

    view = of_ended(run, live)
    if view.error is not msgspec.UNSET:
        at = f" at step {view.error.step}" if view.error.step else ""
        said = f": {view.error.message}" if view.error.message else ""
        message = f"It failed{at} [{view.error.kind}]{said}"
        return reply(Problem(error="Ensemble execution failed", message=message), 500)
    if view.withheld:
        message = "The result holds a secret, so it is not given out."
        return reply(Problem(error="Ensemble execution failed", message=message), 500)
    headers = dict(_sendable(run.headers.items()))
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
    if cache_control and not any(name.lower() == "cache-control" for name in headers):
        headers["Cache-Control"] = cache_control
    headers["X-Content-Type-Options"] = "nosniff"
    output = sayable(run.output)
    bare = run.status in (204, 304) or run.status < 200 or (output is None and 300 <= run.status < 400)  # noqa: PLR2004
    if bare:
        return Response(b"", run.status, headers)
    if isinstance(output, str) and kind is not None:
        return Response(output.encode(), run.status, headers)
    found = reply(output, run.status)
    found.headers.update(headers)
    return found


def _sendable(headers: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    """The headers that an ensemble may send; how a message is framed is not its to say."""
    for name, value in headers:
        text = str(value).encode("utf-8", "replace").decode("latin-1")
        fault = name_fault(name) or value_fault(name, text)
        if name.lower() == "location" and not _is_onward(text):
            fault = "the address of a redirect is neither a path nor of http"
        if fault is not None:
            _log.warning("a header is left out: %s", fault)
        else:
            yield name, text


def _is_onward(address: str) -> bool:
    path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return path or form_fault(address.partition("#")[0]) is None


async def _asked(request: Request) -> Asked:
    """The request as its ensemble gets it. Raises Rejected."""
    query: dict[str, str | list[str]] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        query[name] = values if len(values) > 1 else values[0]
    return Asked(
        method=request.method,
        path=request.url.path,
        url=str(request.url),
        params={name: str(value) for name, value in request.path_params.items()},
        query=query,
        headers=dict(request.headers),
        body=await _body(request) if request.method in ("POST", "PUT", "PATCH") else msgspec.UNSET,
    )


async def _body(request: Request) -> Any:
    """JSON, a form, or text."""
    data = await request.body()
    if not data:
        return msgspec.UNSET
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json" or kind.endswith("+json"):
            return given_json(data)
        if kind == _FORM:
            text = data.decode()
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
        if kind.startswith("text/"):
            return data.decode()
    except RecursionError:
        raise Rejected(400, "Invalid body", "The JSON is nested too deeply.") from None
    except ValueError as error:
        raise Rejected(400, "Invalid body", str(error)) from None
    raise Rejected(
        415, "Unsupported media type", f"The body is read as JSON, a form or text, not {kind or 'nothing'}."
    )
