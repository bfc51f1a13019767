"""The REST dialect: `GET /mcp/tools` lists what a client may call, `POST /mcp/tools/{name}` calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import NotFoundError
from luthier.serve.api.asking import Rejected, read_body, reply, waited
from luthier.trace import PARENT, STATE, Trace

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from luthier.serve.answer import Answer
    from luthier.serve.service import Service


class Asked(msgspec.Struct):
    """The body of a call; other members are passed over."""

    arguments: dict[str, Any] = {}


def rest_routes(service: Service) -> list[Route]:
    """Both routes, for an application whose requests have a user."""
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def listed(request: Request) -> Response:
        return JSONResponse({"tools": await service.tools(request.user.display_name)})

    async def called(request: Request) -> Response:
        try:
            asked = await read_body(request, Asked)
        except Rejected as error:
            return reply(error.problem, error.status)
        name = request.path_params["name"]
        try:
            client, trace = request.user.display_name, Trace.read(*map(request.headers.get, (PARENT, STATE)))
            task = await service.begin(client, name, asked.arguments, _unheard, trace=trace)
        except NotFoundError:
            return JSONResponse({"error": "Ensemble not found", "ensemble": name}, status_code=404)
        answer = await waited(request, task, task.cancel)
        return JSONResponse(_body(answer), status_code=400 if answer.rejected else 200)

    return [
        Route("/mcp/tools", listed, methods=["GET"]),
        Route("/mcp/tools/{name}", called, methods=["POST"]),
    ]


def _unheard(_: object) -> None:
    """A reply in one piece tells of no steps."""


def _body(answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = {"content": answer.blocks, "isError": answer.is_error, "_meta": answer.meta}
    if answer.structured is not msgspec.UNSET:
        body["structuredContent"] = answer.structured
    return body
