"""`builtin://http`: one request to an address of the web, within the rules that the caller's project gives.

Where it may lead stands in the call's `web`, not in its arguments: who can only choose arguments reaches
public addresses by https and nothing else. Redirects are followed within the same origin only, no cookies
are kept, and no credentials are sent but those among the headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import StepError
from luthier.outside.answers import answer, failure
from luthier.outside.request import METHODS, request_of
from luthier.outside.response import response_of
from luthier.taint import UNTRUSTED
from luthier.tools import Tool
from luthier.uri import ToolUri
from luthier.web import origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.tools import Reply, ToolCall
    from luthier.wire.http import HttpClient

LARGEST = 10 * 1024 * 1024
"""Bytes of a response, unpacked, where the call does not say less."""

TIMEOUT = 30.0
"""Seconds for one request, where neither the call nor its step says otherwise."""

_CONNECTING = 10.0
_PLAIN = {"type": ["string", "number", "boolean", "null"]}
_PAIRS = {
    "type": ["object", "null"],
    "additionalProperties": {"anyOf": [_PLAIN, {"type": "array", "items": _PLAIN}]},
}
_TOOL = Tool(
    uri=ToolUri.builtin("http"),
    description="Send one HTTP request and give its status, headers and body.",
    input_schema={
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1},
            "method": {"enum": list(METHODS)},
            "params": {**_PAIRS, "description": "The query."},
            "headers": {"type": ["object", "null"], "additionalProperties": _PLAIN},
            "body": {"description": "Text is sent as it is, anything else as JSON."},
            "form": {**_PAIRS, "description": "A body of form fields."},
            "max_bytes": {"type": "integer", "minimum": 1, "maximum": LARGEST},
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    annotations={
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
)


class HttpTool:
    """Its client is made with the first request. `environ` says which proxies there are."""

    tool = _TOOL
    label = UNTRUSTED
    timeout: float | None = TIMEOUT

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._client: HttpClient | None = None

    async def carry(self, call: ToolCall) -> Reply:
        """Send it. Any status is an answer, one that is no success an error. Raises WireError."""
        from luthier.wire.http import HttpTarget
        from luthier.wire.http.facts import Asked

        arguments = call.arguments.value
        try:
            request = request_of(arguments, call.web)
        except StepError as error:
            return failure(error)
        target = HttpTarget(
            server=origin(request.url)[1],
            url=request.url,
            reach=call.web.reach(request.url),
            max_message_bytes=arguments.get("max_bytes") or LARGEST,
            timeout=_CONNECTING,
        )
        asked = Asked(method=f"the {request.method} request")
        response = await self._open().open(
            target, asked, request.method, request.url, request.headers, request.body
        )
        found = response_of(response.status, response.headers, await response.read())
        return answer(found, is_error=not found["ok"])

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.close()

    def _open(self) -> HttpClient:
        from luthier.wire.http import HttpClient

        if self._client is None:
            self._client = HttpClient(self._environ)
        return self._client
