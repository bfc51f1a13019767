"""What a server may ask of us: ping, and whatever there is a handler for; the rest is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.wire.faults import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from luthier.wire.link import Link

MOST_AT_ONCE = 32
"""Requests of one server that are worked on at the same time; more are refused."""

TOOLS_CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_CANCELLED = "notifications/cancelled"
_INTERNAL_ERROR = -32603

Answerer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes the params of a server's request and gives its result."""


class Handlers(msgspec.Struct, frozen=True, kw_only=True):
    """What a session does for its server. A request without its handler is refused politely."""

    sampling: Answerer | None = None
    elicitation: Answerer | None = None
    roots: Answerer | None = None
    on_tools_changed: Callable[[], None] | None = None
    on_noise: Callable[[str], None] | None = None

    @property
    def capabilities(self) -> dict[str, Any]:
        """What we may say that we can do."""
        named = {"sampling": self.sampling, "elicitation": self.elicitation, "roots": self.roots}
        return {name: {} for name, handler in named.items() if handler is not None}


class Peer:
    """Answers on a link. Every request that is worked on is a task, ended by `close`."""

    def __init__(self, link: Link, handlers: Handlers) -> None:
        self._link = link
        self._handlers = handlers
        self._answerers = {
            "sampling/createMessage": handlers.sampling,
            "elicitation/create": handlers.elicitation,
            "roots/list": handlers.roots,
        }
        self._working: dict[Any, asyncio.Task[None]] = {}
        self.on_acknowledged: Callable[[], None] | None = None  # a subscription stands
        link.on_request = self._asked
        link.on_notification = self._told

    async def answer(self, requests: dict[str, Any]) -> dict[str, Any] | None:
        """The answers to requests that came with a result, by their keys; None where one has none."""
        wanted: list[tuple[str, Answerer, dict[str, Any]]] = []
        for key, request in requests.items():
            method = request.get("method") if isinstance(request, dict) else None
            answerer = self._answerers.get(method) if isinstance(method, str) else None
            if answerer is None:
                return None
            params = request.get("params")
            wanted.append((key, answerer, params if isinstance(params, dict) else {}))
        answers: dict[str, Any] = {}
        for key, answerer, params in wanted:  # one after the other: they may be put to a person
            try:
                answers[key] = await answerer(params)
            except Exception as error:  # noqa: BLE001  (a handler must not harm the connection)
                self._link.noise.tell(f"the handler of {requests[key]['method']} failed: {error!r}")
                return None
        return answers

    def close(self) -> None:
        for task in self._working.values():
            task.cancel()

    def _asked(self, id: Any, method: str, params: dict[str, Any]) -> None:
        answerer = self._answerers.get(method)
        if method == "ping":
            self._link.reply(id, result={})
        elif answerer is None:
            refusal = {"code": METHOD_NOT_FOUND, "message": f"This client does not offer {method[:80]}"}
            self._link.reply(id, error=refusal)
        elif len(self._working) >= MOST_AT_ONCE or not isinstance(id, str | int):
            self._link.reply(id, error={"code": _INTERNAL_ERROR, "message": "Too many requests at once"})
        else:
            task = asyncio.get_running_loop().create_task(self._work(id, method, answerer, params))
            self._working[id] = task
            task.add_done_callback(lambda _: self._working.pop(id, None))

    async def _work(self, id: Any, method: str, answerer: Answerer, params: dict[str, Any]) -> None:
        try:
            result = await answerer(params)
        except Exception as error:  # noqa: BLE001  (a handler must not harm the connection)
            self._link.noise.tell(f"the handler of {method} failed: {error!r}")
            self._link.reply(id, error={"code": _INTERNAL_ERROR, "message": "The client failed to answer"})
        else:
            self._link.reply(id, result=result)

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method == TOOLS_CHANGED and self._handlers.on_tools_changed is not None:
            try:
                self._handlers.on_tools_changed()
            except Exception as error:  # noqa: BLE001  (likewise)
                self._link.noise.tell(f"the listener to tool changes failed: {error!r}")
        elif method == ACKNOWLEDGED and self.on_acknowledged is not None:
            self.on_acknowledged()
        elif method == _CANCELLED:
            id = params.get("requestId")
            task = self._working.get(id) if isinstance(id, str | int) else None
            if task is not None:
                task.cancel()
