"""The work behind each endpoint: it finds what the caller may see, and hands the rest to the runtime."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from luthier.errors import LuthierError, NotFoundError, Refused, RunError
from luthier.govern.approvals import TOKEN
from luthier.govern.deciding import objection
from luthier.serve.api import shapes, streams, views
from luthier.serve.api.asking import Ask, Rejected, answered, reply, waited
from luthier.serve.api.endpoints import API, ENDPOINTS, EVENTS
from luthier.serve.api.openapi import document
from luthier.workflows import encode
from luthier.workflows.runs import OPEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from luthier.clock import Clock
    from luthier.govern import Request as Asked
    from luthier.serve.api.endpoints import Endpoint
    from luthier.serve.bearing import Bearing
    from luthier.serve.board import Live
    from luthier.serve.service import Service
    from luthier.spec import Ensemble
    from luthier.workflows import Entry, RunRow


def api_routes(service: Service, clock: Clock, bearing: Bearing | None) -> list[Route]:
    """A route for each endpoint, and one for the document that describes them."""
    from starlette.routing import Route

    api = Api(service, clock)
    described = msgspec.json.encode(document(ENDPOINTS))

    async def answer(endpoint: Endpoint, request: Request) -> Response:
        return await answered(request, endpoint, getattr(api, endpoint.work), bearing)

    async def openapi(_: Request) -> Response:
        return reply(msgspec.Raw(described))

    routes = [Route(one.path, partial(answer, one), methods=[one.method], name=one.work) for one in ENDPOINTS]
    return [*routes, Route("/openapi.json", openapi, methods=["GET"])]


class Api:
    """One runtime's."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._runtime = service.runtime
        self._clock = clock

    async def ensembles(self, ask: Ask) -> Response:
        found = self._service.runnable(ask.caller.id)
        return reply(
            shapes.EnsemblesView(ensembles=[views.of_ensemble(found[name]) for name in sorted(found)])
        )

    async def ensemble(self, ask: Ask) -> Response:
        return reply(views.of_ensemble(self._runnable(ask)))

    async def run(self, ask: Ask) -> Response:
        """Wait for it, tell of it while it goes on, or let it go on by itself."""
        if ask.prefers("respond-async"):
            return self._begun(self._start(ask), {"Preference-Applied": "respond-async"})
        live = self._start(ask)
        if ask.accepts(EVENTS):
            return streams.streamed(
                streams.kept_alive(self._told(live, 0, owned=not ask.body.durable), self._clock)
            )
        call_off = _nothing if ask.body.durable else live.handle.cancel
        run = await waited(ask.request, asyncio.ensure_future(live.handle.wait()), call_off)
        status, headers = (202, {"Location": _place(live.id)}) if run.suspended else (200, None)
        return reply(views.of_ended(run, live), status, headers)

    async def run_async(self, ask: Ask) -> Response:
        return self._begun(self._start(ask))

    async def runs(self, ask: Ask) -> Response:
        query: shapes.RunsQuery = ask.query
        asked = {name: value for name, value in msgspec.structs.asdict(query).items() if value is not UNSET}
        if not ask.caller.may("admin"):
            asked["principal"] = ask.caller.principal
        rows = await asyncio.to_thread(lambda: self._runtime.runs.list(**asked))
        kept = {row.id for row in rows}
        going = [
            views.of_live(live)
            for live in self._service.board.going
            if self._sees(ask, live.principal)
            and live.id not in kept
            and query.before is UNSET
            and query.status in (UNSET, "running")
            and query.ensemble in (UNSET, live.ensemble)
        ]
        more = rows[-1].id if len(rows) == query.limit else None
        return reply(shapes.RunsPage(runs=[*going, *map(views.of_row, rows)], next=more))

    async def run_of(self, ask: Ask) -> Response:
        live = self._live(ask)
        if live is not None:
            return reply(views.of_live(live))
        return reply(views.of_row(*await self._kept(ask)))

    async def events(self, ask: Ask) -> Response:
        last = ask.request.headers.get("last-event-id", "0")
        after = int(last) if last.isdecimal() and len(last) < 10 else 0  # noqa: PLR2004  (as many as there can be)
        live = self._live(ask)
        if live is not None:
            return streams.streamed(streams.kept_alive(self._told(live, after), self._clock))
        return streams.streamed(_kept_events(*await self._kept(ask), after))

    async def record(self, ask: Ask) -> Response:
        """What happened in it, with the values; what is secret is not in it."""
        _, record = await self._kept(ask)
        return reply(shapes.RecordView(entries=[msgspec.Raw(encode(entry)) for entry in record]))

    async def cancel(self, ask: Ask) -> Response:
        live = self._live(ask)
        if live is not None:
            live.handle.cancel()
            return reply(views.of_live(live), 202, {"Location": _place(live.id)})
        row, _ = await self._kept(ask)
        try:
            row = await self._runtime.runs.cancel(row.id)
        except RunError as error:
            raise Rejected(409, "Conflict", error.message) from None
        return reply(views.of_row(row), 202, {"Location": _place(row.id)})

    async def resume(self, ask: Ask) -> Response:
        """Go on with a durable run that was cut off, or whose requests have been decided."""
        if self._live(ask) is not None:
            raise Rejected(409, "Conflict", f"The run {ask.name} goes on already.")
        row, _ = await self._kept(ask)
        if not row.durable:
            raise Rejected(409, "Conflict", f"The run {row.id} is not durable, so it cannot go on.")
        try:
            return self._begun(await self._service.board.resume(row))
        except RunError as error:
            raise Rejected(409, "Conflict", error.message) from None

    async def approvals(self, ask: Ask) -> Response:
        listed = [one for one in await self._runtime.approvals.list() if not self._objection(ask, one)]
        return reply(shapes.ApprovalsView(approvals=list(map(views.of_request, listed))))

    async def approval(self, ask: Ask) -> Response:
        return reply(views.of_request(await self._request(ask)))

    async def token(self, ask: Ask) -> Response:
        """A token that decides in the caller's place."""
        request = await self._request(ask)
        by: dict[str, Any] = {"by": ask.caller.principal, "roles": ask.caller.roles}
        try:
            made = await self._runtime.approvals.token(request.id, **by)
        except Refused as error:
            raise _not_decided(error) from None
        return reply(shapes.TokenView(token=made, path=f"/callback/{made}"))

    async def approve(self, ask: Ask) -> Response:
        body: shapes.DecisionBody = ask.body
        return await self._decided(ask, approved=True, answer=body.answer, why=body.reason)

    async def reject(self, ask: Ask) -> Response:
        body: shapes.DecisionBody = ask.body
        return await self._decided(ask, approved=False, answer=UNSET, why=body.reason)

    async def callback(self, ask: Ask) -> Response:
        """Decide by a token: whoever holds it was sent it by somebody who may decide."""
        body: shapes.CallbackBody = ask.body
        approvals = self._runtime.approvals
        answer = body.answer if body.answer is not UNSET else body.feedback
        how: dict[str, Any] = {
            "why": body.reason,
            "by": "callback",
            "via": f"http, {body.approver or 'unnamed'}",
        }
        if not ask.name.startswith(TOKEN):
            raise _spent()
        try:
            wants = (await approvals.get(ask.name)).schema is not None
            if body.approved:
                decided = await approvals.approve(ask.name, answer=answer if wants else UNSET, **how)
            else:
                decided = await approvals.deny(ask.name, **how)
        except NotFoundError:
            raise _spent() from None
        except Refused as error:
            raise _not_decided(error) from None
        await self._service.board.decided(decided)
        return reply(views.of_request(decided))

    # What they stand on

    def _runnable(self, ask: Ask) -> Ensemble:
        found = self._service.runnable(ask.caller.id).get(ask.name)
        if found is None:
            raise NotFoundError("ensemble", ask.name)
        return found

    def _start(self, ask: Ask) -> Live:
        """Begin the run that is asked for. Raises what says that nothing was begun."""
        body: shapes.RunBody = ask.body
        ensemble = self._runnable(ask)
        if body.inputs is not UNSET and body.input is not UNSET:
            raise Rejected(400, "Invalid body", "`input` says the same as `inputs`: write only one of them.")
        inputs = body.inputs if body.inputs is not UNSET else body.input
        seconds = None if body.timeout is None else body.timeout / 1000
        given = {} if inputs is UNSET else inputs
        return self._service.board.start(
            ask.caller, ensemble, given, run_timeout=seconds, durable=body.durable, trace=ask.trace
        )

    @staticmethod
    def _begun(live: Live, headers: dict[str, str] | None = None) -> Response:
        return reply(views.of_live(live), 202, {"Location": _place(live.id), **(headers or {})})

    async def _told(self, live: Live, after: int, *, owned: bool = False) -> AsyncGenerator[bytes]:
        """The events of a run that goes on. It is called off where whoever began it so goes away."""
        try:
            async for heard in live.follow(after):
                yield streams.event(heard.number, heard.name, heard.data)
            owned = False
            run = await live.handle.wait()
            yield streams.event(len(live.heard) + 1, "end", views.of_ended(run, live))
        except LuthierError:
            problem = shapes.Problem(error="Failed", message="The run broke off.")
            yield streams.event(len(live.heard) + 1, "error", problem)
        finally:
            if owned:
                live.handle.cancel()

    def _sees(self, ask: Ask, principal: str) -> bool:
        return principal == ask.caller.principal or ask.caller.may("admin")

    def _live(self, ask: Ask) -> Live | None:
        live = self._service.board.get(ask.name)
        return live if live is not None and self._sees(ask, live.principal) else None

    async def _kept(self, ask: Ask) -> tuple[RunRow, tuple[Entry, ...]]:
        """A run of the caller's, with its record. Raises NotFoundError, also for one of another."""

        def found() -> tuple[RunRow, tuple[Entry, ...]]:
            row = self._runtime.runs.get(ask.name)
            if not self._sees(ask, row.principal):
                raise NotFoundError("run", ask.name)
            return row, self._runtime.runs.record(ask.name)

        return await asyncio.to_thread(found)

    def _objection(self, ask: Ask, request: Asked) -> str:
        return objection(request, ask.caller.principal, ask.caller.roles)

    async def _request(self, ask: Ask) -> Asked:
        """A request that the caller may decide about. Raises NotFoundError and Rejected."""
        if ask.name.startswith(TOKEN):  # a token is no id, and nothing that is written into logs
            raise NotFoundError("request with this token", "")
        request = await self._runtime.approvals.get(ask.name)
        if why := self._objection(ask, request):
            raise Rejected(403, "Forbidden", why)
        return request

    async def _decided(self, ask: Ask, *, approved: bool, answer: Any, why: str) -> Response:
        request = await self._request(ask)
        by: dict[str, Any] = {"by": ask.caller.principal, "roles": ask.caller.roles, "via": "http"}
        approvals = self._runtime.approvals
        try:
            if approved:
                decided = await approvals.approve(request.id, answer=answer, why=why, **by)
            else:
                decided = await approvals.deny(request.id, why=why, **by)
        except Refused as error:
            raise _not_decided(error) from None
        await self._service.board.decided(decided)
        return reply(views.of_request(decided))


async def _kept_events(row: RunRow, record: tuple[Entry, ...], after: int) -> AsyncGenerator[bytes]:
    """The events of a run that does not go on here."""
    heard = views.steps_of(record)
    for number, (name, data) in enumerate(heard, 1):
        if number > after:
            yield streams.event(number, name, data)
    name = "state" if row.status in OPEN else "end"
    yield streams.event(len(heard) + 1, name, views.of_row(row, record))


def _nothing() -> None:
    """A durable run goes on, whoever goes away."""


def _place(run: str) -> str:
    return f"{API}/runs/{run}"


def _spent() -> Rejected:
    return Rejected(
        410, "Gone", "This token is not good, or not any more: it decides once, and not after its time."
    )


def _not_decided(error: Refused) -> Rejected:
    """A decision that does not count: the answer does not fit, or another was faster."""
    if error.refusal_kind == "arguments":
        return Rejected(400, "Invalid answer", error.reason)
    return Rejected(409, "Conflict", error.reason)
