"""The requests that streamable HTTP makes of one server, with the headers that each must carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.wire.era import LATEST_MODERN, MODERN_VERSIONS
from luthier.wire.http.facts import Asked, asked_for
from luthier.wire.http.sse import STREAM
from luthier.wire.http.target import laid_over, revealed
from luthier.wire.mirrors import header_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.secrets import Secret
    from luthier.wire.http.client import Answer, HttpClient
    from luthier.wire.http.target import HttpTarget
    from luthier.wire.transport import Outgoing

_POST = {"Content-Type": "application/json", "Accept": f"application/json, {STREAM}"}
_OWN = frozenset(
    {
        "content-type",
        "accept",
        "content-length",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    }
)
_KEPT = 1024  # heads of requests


class Requests:
    """Sends them. `session` is the id of the session that a server before 2026 keeps; empty: none."""

    def __init__(self, client: HttpClient, target: HttpTarget) -> None:
        self._client = client
        self._target = target
        self._custom = {name: value for name, value in target.headers.items() if name.lower() not in _OWN}
        self._headers: dict[tuple[str, str, str], dict[str, str]] = {}
        self._session = ""

    @property
    def session(self) -> str:
        return self._session

    @session.setter
    def session(self, id: str) -> None:
        self._session = id
        self._headers.clear()

    async def post(self, message: Outgoing) -> Answer:
        """Send a message."""
        headers = self._headers_of(message)
        target = self._target
        if message.headers is not None:
            headers, target = laid_over(headers, revealed(message.headers)), target.given(message.headers)
        return await self._client.open(target, asked_for(message), "POST", target.url, headers, message.data)

    async def get(self, version: str, last_id: str | None, given: dict[str, Secret] | None = None) -> Answer:
        """Ask for a stream: the standing one, or what comes in one after the event of that id.

        `given` are the headers that the caller gave whose answer it is.
        """
        headers = {**self._custom, "Accept": STREAM}
        target = self._target
        if given is not None:
            headers, target = laid_over(headers, revealed(given)), target.given(given)
        if version:
            headers["MCP-Protocol-Version"] = version
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        asked = Asked(phase="list", method="the request for its stream")
        return await self._client.open(target, asked, "GET", target.url, headers, b"")

    async def end_session(self, version: str) -> None:
        """Tell the server that its session is over."""
        headers = {**self._custom, "Mcp-Session-Id": self._session}
        if version:
            headers["MCP-Protocol-Version"] = version
        asked = Asked(phase="close", method="the end of the session")
        answer = await self._client.open(self._target, asked, "DELETE", self._target.url, headers, b"")
        answer.drop()

    def _headers_of(self, message: Outgoing) -> Mapping[str, str]:
        version = message.version
        if not version and message.method == "server/discover":
            version = LATEST_MODERN
        modern = version in MODERN_VERSIONS
        key = (version, message.method, message.name) if modern else (version, "", "")
        headers = self._headers.get(key)
        if headers is None:
            headers = {**self._custom, **_POST}
            if version:
                headers["MCP-Protocol-Version"] = version
            if modern:
                headers["Mcp-Method"] = message.method
                if message.name:
                    headers["Mcp-Name"] = header_value(message.name)
            elif self._session and message.method != "initialize":
                headers["Mcp-Session-Id"] = self._session
            if message.method != "initialize":
                if len(self._headers) >= _KEPT:
                    self._headers.clear()
                self._headers[key] = headers
        return {**headers, **message.mirrored} if message.mirrored else headers
