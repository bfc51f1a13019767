"""A request of the API as its endpoint gets it: who asks, and body and query read by their models.

Whatever is wrong with a request is found here or by the endpoint before it starts anything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from luthier.errors import AuditError, InputError, LuthierError, NotFoundError, Refused, StoreError
from luthier.given import given_json
from luthier.redaction import logger
from luthier.serve.api.shapes import Problem
from luthier.serve.api.views import of_fault
from luthier.serve.board import TooManyError
from luthier.serve.caller import Caller, Refusal
from luthier.serve.door import challenge, missing_role
from luthier.trace import PARENT, STATE, Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from luthier.serve.api.endpoints import Endpoint
    from luthier.serve.bearing import Bearing

T = TypeVar("T")

_log = logger("luthier.serve")
JSON = "application/json"


class Rejected(Exception):
    """A request that is not done, and why."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(error=error, message=message)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    caller: Caller
    request: Any
    body: Any = None
    query: Any = None

    @property
    def name(self) -> str:
        """The part of the address that says what it is about."""
        return str(next(iter(self.request.path_params.values())))

    def accepts(self, kind: str) -> bool:
        """Whether the caller asks for an answer of this kind by its name."""
        listed = self.request.headers.get("accept", "").lower().split(",")
        return any(part.partition(";")[0].strip() == kind for part in listed)

    def prefers(self, word: str) -> bool:
        """Whether a `Prefer` header says this (RFC 7240)."""
        listed = ",".join(self.request.headers.getlist("prefer")).lower().split(",")
        return any(part.partition(";")[0].strip() == word for part in listed)

    @property
    def trace(self) -> Trace | None:
        """The trace that the request belongs to, where its headers say one."""
        return Trace.read(*map(self.request.headers.get, (PARENT, STATE)))


async def waited(request: Request, work: asyncio.Future[T], call_off: Callable[[], object]) -> T:
    """What comes of it; it is called off where whoever asked goes away meanwhile, once the body is read."""

    async def leaves() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(leaves())
    try:
        both: set[asyncio.Future[Any]] = {work, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            call_off()
        return await work
    finally:
        gone.cancel()


async def read(request: Request, endpoint: Endpoint) -> Ask:
    """Read a request. Raises Rejected."""
    body = None if endpoint.body is None else await read_body(request, endpoint.body)
    return Ask(
        caller=request.scope["caller"],
        request=request,
        body=body,
        query=None if endpoint.query is None else _query(request, endpoint.query),
    )


async def answered(
    request: Request, endpoint: Endpoint, work: Callable[[Ask], Awaitable[Response]], bearing: Bearing | None
) -> Response:
    """The response of an endpoint; what it cannot do is told in the one shape."""
    caller: Caller = request.scope["caller"]
    if endpoint.role and not caller.may(endpoint.role):
        refusal = missing_role(caller, endpoint.role)
        _log.warning("refused %s: %s", endpoint.work, refusal.why)
        return refused(refusal, bearing)
    try:
        return await work(await read(request, endpoint))
    except (Rejected, TooManyError, LuthierError, TimeoutError, RecursionError) as error:
        return fault_of(error, endpoint.work)


def fault_of(error: Exception, what: str) -> Response:
    """The answer where something stopped a request."""
    status, problem, headers = 500, Problem(error="Failed", message="The request could not be done."), None
    match error:
        case Rejected():
            status, problem = error.status, error.problem
        case TooManyError():
            status, headers = 429, {"Retry-After": "5"}
            problem = Problem(error="Too many requests", message="Too many runs go on.")
        case InputError():
            status, problem = 400, of_fault(error)
        case NotFoundError():
            status = 404
            problem = Problem(error="Not found", message=f"{error.absent}.")
        case Refused():
            status, problem = 403, Problem(error="Refused", message=error.reason)
        case StoreError() | AuditError() | TimeoutError():
            status, problem = 503, Problem(error="Unavailable", message="It cannot be done now.")
    if status >= 500:  # noqa: PLR2004  (ours)
        _log.error("%s failed: %s", what, error)
    return reply(problem, status, headers)


async def nothing_here(_: Request, error: Any) -> Response:
    """The answer where there is nothing, or nothing that is asked for in this way."""
    return reply(Problem(error=error.detail, message="See /openapi.json."), error.status_code, error.headers)


def refused(refusal: Refusal, bearing: Bearing | None) -> Response:
    """The answer to who is known and may not."""
    found = reply(Problem(error="Forbidden", message=refusal.message), refusal.status)
    found.headers.update(challenge(refusal, bearing))
    return found


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON."""
    from starlette.responses import Response

    return Response(msgspec.json.encode(value), status, headers, media_type=JSON)


async def read_body(request: Request, model: type[Any]) -> Any:
    """A JSON body by its model. Raises Rejected."""
    text = await request.body()
    kinds = request.headers.getlist("content-type")
    kind = kinds[0].partition(";")[0].strip().lower() if kinds else ""
    if text and (kind != JSON or len(kinds) > 1):
        raise Rejected(415, "Unsupported media type", f"The body must be {JSON}, not {kind or 'of no type'}.")
    try:
        return given_json(text or b"{}", model)
    except RecursionError:
        raise Rejected(400, "Invalid body", "The JSON is nested too deeply.") from None
    except msgspec.DecodeError as error:
        raise Rejected(400, "Invalid body", str(error)) from None


def _query(request: Request, model: type[Any]) -> Any:
    given = dict(request.query_params)
    try:
        return msgspec.convert(given, model, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected(400, "Invalid query", str(error)) from None
