"""Serving over HTTP: a socket that is bound before anybody is told of it, and an orderly end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from luthier.clock import SystemClock
from luthier.errors import Fault, LuthierError, SpecError
from luthier.serve.addresses import Addresses
from luthier.serve.api import api_routes, nothing_here
from luthier.serve.bearing import Bearing
from luthier.serve.callers import Callers
from luthier.serve.cors import Cors
from luthier.serve.direct import Direct
from luthier.serve.door import PATH, Door, own_hosts
from luthier.serve.gone import Gone
from luthier.serve.health import open_routes
from luthier.serve.hooks import trigger_routes
from luthier.serve.ids import Ids
from luthier.serve.jwks import keys_of
from luthier.serve.locks import Tokens
from luthier.serve.messages import Messages
from luthier.serve.modern import schema_of
from luthier.serve.protocol import Files, protocol_server
from luthier.serve.punctual import punctual, room
from luthier.serve.replays import Replays
from luthier.serve.rest import rest_routes
from luthier.serve.triggers import Keys, triggers_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from starlette.routing import Route

    from luthier.clock import Clock
    from luthier.serve.protocol import Offering
    from luthier.serve.service import Service
    from luthier.spec import Project

SESSIONS = 1000
"""Sessions of the revisions before 2026-07-28 that may be open at once."""

IDLE = 1800
"""Seconds after which one that nobody uses is over."""

GRACE = 2
"""Seconds that open streams have to end, once all calls have."""


def address_of(text: str) -> tuple[str, int]:
    """`HOST:PORT` taken apart; an IPv6 address in brackets. Raises LuthierError."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004  (the last port)
        raise _fault(f"{text!r} is no address to listen on", "write HOST:PORT, as 127.0.0.1:8080")
    if bare == "localhost":
        return "127.0.0.1", int(port)
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        hint = "write an address of this machine, as 127.0.0.1:8080; names that callers use are `serve.hosts`"
        raise _fault(f"{bare!r} is no IP address", hint) from None
    return bare, int(port)


def bind(address: str) -> socket.socket:
    """A socket that listens there. Raises LuthierError where the address is taken."""
    host, port = address_of(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise LuthierError(f"{address} cannot be listened on: {error.strerror}.") from error
    # What is accepted inherits it: an answer in several pieces must not wait for the other side's word.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def _fault(message: str, suggestion: str) -> SpecError:
    return SpecError([Fault(message, suggestion=suggestion)])


async def _nothing() -> None:
    """Where nothing is to be closed."""


class Listening:
    """A service that listens on one address. Made, it is bound; `serve` answers until it is cancelled."""

    def __init__(
        self,
        service: Offering,
        app: Any,
        bound: socket.socket,
        close: Callable[[], Awaitable[None]] = _nothing,
        ending: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        """`ending` is called when it is over, before the calls at work are called off; `close` after them."""
        self._service = service
        self._ending = ending
        self._app = app
        self._bound = bound
        self._close = close
        self._clock = clock or SystemClock()
        host, port = bound.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @classmethod
    def on(
        cls,
        address: str,
        service: Service,
        project: Project,
        environ: Mapping[str, str],
        clock: Clock | None = None,
        most_sessions: int = SESSIONS,
    ) -> Self:
        """Bind the address. Raises SpecError where nobody has a token, LuthierError where it is taken."""
        clock = clock or SystemClock()
        callers = Callers.of(project, service.offers.values(), environ)
        issuer = project.serve.oauth
        keys, close = (None, _nothing) if issuer is None else keys_of(issuer, project, environ, clock)
        bearing = None if issuer is None or keys is None else Bearing(issuer, keys)
        given = Keys(callers=callers, bearing=bearing, environ=environ, clock=clock)
        triggers = triggers_of(service.ensembles.values(), given)
        if not callers and issuer is None and not any(trigger.spec.auth for trigger in triggers):
            hint = "write `serve: {clients: {NAME: [TOKEN]}}`; `luthier serve --new-token` makes a token"
            raise _fault("Nobody has a token, so nobody could call", hint)
        host, _ = address_of(address)
        if project.environment != "production" and not ipaddress.ip_address(host).is_loopback:
            message = f"{host} can be reached from other machines, and this is a development project"
            raise _fault(message, "listen on 127.0.0.1, or write `environment: production`")
        bound = bind(address)
        own = own_hosts(*bound.getsockname()[:2])
        locks = Addresses(Tokens(callers, bearing), triggers)
        files = Files(service, project, _client_of)
        routes = [
            *rest_routes(service),
            *open_routes(service, bearing),
            *api_routes(service, clock, bearing),
            *trigger_routes(triggers, service, Replays(service.runtime.state, clock)),
        ]
        door = Door(_app(service, project, routes, files, most_sessions), locks, project.serve, own, bearing)
        return cls(service, Cors(door), bound, close, files.watching.close, clock)

    async def serve(self) -> None:
        """Answer until cancelled; then no call is taken, those at work are called off, and streams end."""
        import uvicorn

        class Server(uvicorn.Server):
            """Signals are for whoever runs the loop."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        config = uvicorn.Config(
            self._app,
            http=punctual(self._clock, room()),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[self._bound]))
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            self._ending()
            await self._service.close()
            await serving
            await self._close()


def _client_of(request: Any) -> str:
    name: str = request.user.display_name
    return name


def _app(service: Service, project: Project, routes: list[Route], files: Files, most_sessions: int) -> Any:
    from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
    from starlette.exceptions import HTTPException

    server = protocol_server(service, _client_of, files=files, schema_of=schema_of)
    limit = project.serve.max_body_bytes
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=limit,
        session_idle_timeout=IDLE,
        max_sessions=most_sessions,
        # The door has looked at Host and Origin, for every path and not only for this one.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=routes,
    )
    app.add_exception_handler(HTTPException, nothing_here)
    return RequestBodyLimitMiddleware(Messages(Direct(Ids(Gone(app)), service, PATH), PATH), limit)
