"""A provider on the loopback that speaks both tongues, keeps what it was asked, and misbehaves on request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Asked:
    """One request as it arrived."""

    def __init__(self, path: str, headers: dict[str, str], body: Any) -> None:
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def key(self) -> str:
        """The key that came along, whichever way the SDK sends it."""
        return self.headers.get("x-api-key") or self.headers["authorization"].removeprefix("Bearer ")


class Loopback:
    """`says` is the answer: a text, or a mapping that is structured. `behave` replaces the whole response."""

    def __init__(self) -> None:
        self.base = ""
        self.asked: list[Asked] = []
        self.says: Any = "Good day."
        self.stop = ""
        self.behave: str = ""
        self.response: tuple[int, dict[str, str], str] | None = None
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.path, headers, await request.json()))
        self.arrived.set()
        if self.behave == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                self.gone.set()
        if self.behave == "drop":
            assert request.transport is not None
            request.transport.abort()
        if self.response is not None:
            status, more, text = self.response
            return web.Response(status=status, headers=more, body=text, content_type="application/json")
        body = self._anthropic() if request.path.endswith("/messages") else self._openai()
        return web.json_response(body, headers={"x-request-id": "req-1", "request-id": "req-1"})

    def _openai(self) -> dict[str, Any]:
        text = self.says if isinstance(self.says, str) else web.json_response(self.says).text
        return {
            "id": "answer-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1-dated",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": self.stop or "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {
                "prompt_tokens": 12,
                "completion_tokens": 5,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }

    def _anthropic(self) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "text", "text": self.says}
        if not isinstance(self.says, str):
            block = {"type": "tool_use", "id": "use-1", "name": "answer", "input": self.says}
        return {
            "id": "answer-1",
            "type": "message",
            "role": "assistant",
            "model": "m-1-dated",
            "content": [block],
            "stop_reason": self.stop or ("end_turn" if isinstance(self.says, str) else "tool_use"),
            "stop_sequence": None,
            "usage": {"input_tokens": 8, "output_tokens": 5, "cache_read_input_tokens": 4},
        }


@asynccontextmanager
async def loopback() -> AsyncIterator[Loopback]:
    """A provider for the body of the `async with`."""
    provider = Loopback()
    app = web.Application()
    app.router.add_post("/{path:.*}", provider.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        provider.base = f"http://{host}:{port}"
        yield provider
    finally:
        await runner.cleanup()
