"""Resources, prompts and the completion of their arguments as requests of the protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

from luthier.caller import Caller
from luthier.errors import CallerError, InputError, LuthierError, NotFoundError
from luthier.redaction import logger
from luthier.serve.levels import is_old

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import Server, ServerRequestContext
    from mcp_types import (
        CompleteRequestParams,
        CompleteResult,
        GetPromptRequestParams,
        GetPromptResult,
        InputRequiredResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
    )

    from luthier.serve.prompts import Prompts
    from luthier.serve.rounds import Rounds
    from luthier.serve.shelf import Shelf
    from luthier.serve.talk import Talk
    from luthier.spec import Variable

    Context = ServerRequestContext[Any, Any]

_log = logger("luthier.serve")
_MISSING = -32002
"""What a resource that is not there was answered with before 2026-07-28."""

MOST_VALUES = 100
"""What the protocol lets a completion hold."""


class Reading:
    """The handlers of one server."""

    def __init__(
        self, shelf: Shelf, prompts: Prompts, rounds: Rounds, client_of: Callable[[Any], str]
    ) -> None:
        self._shelf = shelf
        self._prompts = prompts
        self._rounds = rounds
        self._client_of = client_of

    def handle(self, server: Server[Any]) -> None:
        """Have the server answer these requests."""
        from mcp_types import (
            CompleteRequestParams,
            GetPromptRequestParams,
            PaginatedRequestParams,
            ReadResourceRequestParams,
        )

        server.add_request_handler("resources/list", PaginatedRequestParams, self._resources)
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, self._templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        server.add_request_handler("prompts/list", PaginatedRequestParams, self._listed)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self._get)
        server.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _resources(self, context: Context, _: PaginatedRequestParams) -> ListResourcesResult:
        from mcp_types import ListResourcesResult

        found = self._shelf.listed(self._client(context), templates=False)
        return ListResourcesResult.model_validate({"resources": found})

    async def _templates(self, context: Context, _: PaginatedRequestParams) -> ListResourceTemplatesResult:
        from mcp_types import ListResourceTemplatesResult

        found = self._shelf.listed(self._client(context), templates=True)
        return ListResourceTemplatesResult.model_validate({"resourceTemplates": found})

    async def _read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ReadResourceResult

        uri, client = str(params.uri), self._client(context)
        try:
            found = await self._shelf.read(client, uri)
        except NotFoundError:
            code = _MISSING if is_old(context) else INVALID_PARAMS
            raise MCPError(code, "Resource not found", {"uri": uri}) from None
        except LuthierError as error:
            raise MCPError(INTERNAL_ERROR, error.message, {"uri": uri}) from error
        _log.info("client %s read %s", client, uri)
        return ReadResourceResult.model_validate({"contents": [found]})

    async def _listed(self, context: Context, _: PaginatedRequestParams) -> ListPromptsResult:
        from mcp_types import ListPromptsResult

        return ListPromptsResult.model_validate({"prompts": self._prompts.listed(self._client(context))})

    async def _get(
        self, context: Context, params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, GetPromptResult

        async def begin(client: str, talk: Talk) -> asyncio.Task[dict[str, Any]]:
            prompt = self._prompts.find(client, params.name)
            given = params.arguments or {}
            return asyncio.create_task(self._prompts.get(client, prompt, given, Caller(talk)))

        try:
            turn = await self._rounds.turn(context, params, begin)
            if turn.questions is not None:
                return turn.questions
            return GetPromptResult.model_validate(await turn.task)
        except NotFoundError:
            _refuse(f"Unknown prompt: {params.name}")
        except InputError as error:
            _refuse("; ".join(fault.message for fault in error.faults))
        except CallerError as error:
            _refuse(error.message)
        except LuthierError as error:
            _log.warning("prompt %s cannot be given: %s", params.name, error)
            raise MCPError(INTERNAL_ERROR, error.message) from error

    async def _complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        from mcp_types import CompleteResult

        name, begun = params.argument.name, params.argument.value
        variable = self._variables(self._client(context), params.ref).get(name)
        values = [value for value in (variable.enum or ()) if value.startswith(begun)] if variable else []
        completion = {
            "values": values[:MOST_VALUES],
            "total": len(values),
            "hasMore": len(values) > MOST_VALUES,
        }
        return CompleteResult.model_validate({"completion": completion})

    def _variables(self, client: str, ref: Any) -> dict[str, Variable]:
        if ref.type == "ref/resource":
            template = self._shelf.template(client, str(ref.uri))
            if template is None:
                _refuse(f"Unknown resource template: {ref.uri}")
            return template.variables
        try:
            return dict(self._prompts.find(client, ref.name).arguments)
        except NotFoundError:
            _refuse(f"Unknown prompt: {ref.name}")

    def _client(self, context: Context) -> str:
        return self._client_of(context.request)


def _refuse(message: str) -> NoReturn:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    raise MCPError(INVALID_PARAMS, message) from None
