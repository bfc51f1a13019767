"""What is told to those who have no token: that the server lives, and where tokens are to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier._version import __version__
from luthier.serve.bearing import WELL_KNOWN

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from luthier.serve.bearing import Bearing
    from luthier.serve.service import Service


def open_routes(service: Service, bearing: Bearing | None) -> list[Route]:
    """`/health`, `/health/live`, `/health/ready`, and the metadata of RFC 9728 where there is an issuer."""
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def alive(request: Request) -> Response:
        told: dict[str, Any] = {"status": "ok"}
        if request.scope["caller"].id:
            told |= {"version": __version__, "broken": sorted(service.broken)}
        return JSONResponse(told)

    async def resource(_: Request) -> Response:
        return JSONResponse(bearing.metadata if bearing else {})

    published = {WELL_KNOWN, bearing.metadata_path} if bearing else set()
    routes = [Route(path, alive, methods=["GET"]) for path in ("/health", "/health/live", "/health/ready")]
    return routes + [Route(path, resource, methods=["GET"]) for path in published]
