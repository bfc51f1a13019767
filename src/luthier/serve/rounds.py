"""A call over as many requests as its questions take: each is a turn, and between them it is kept waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from luthier.serve.asking import capabilities
from luthier.serve.gone import ended_with
from luthier.serve.levels import is_old
from luthier.serve.talk import Talk, Talks

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from mcp.server import ServerRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp_types import InputRequiredResult, InputResponseRequestParams

    from luthier.clock import Clock

    Context = ServerRequestContext[Any, Any]

T = TypeVar("T")


class Turn(Generic[T]):
    """What a turn came to: the task, which is done, or the questions that the client must answer first.

    `incapable`: what the client could not be asked, as the error that the protocol has for it.
    """

    def __init__(
        self,
        task: asyncio.Task[T],
        questions: InputRequiredResult | None = None,
        incapable: MCPError | None = None,
    ) -> None:
        self.task = task
        self.questions = questions
        self.incapable = incapable


class Rounds:
    """The turns of one server's calls. `client_of` tells by the request of a transport who calls."""

    def __init__(self, client_of: Callable[[Any], str], clock: Clock | None = None) -> None:
        self._client_of = client_of
        self._talks = Talks(clock)

    async def turn(
        self,
        context: Context,
        params: InputResponseRequestParams,
        begin: Callable[[str, Talk], Awaitable[asyncio.Task[T]]],
    ) -> Turn[T]:
        """Go on with what the request goes on with, or begin it.

        Where whoever asks goes away meanwhile, it is called off.
        """
        client = self._client_of(context.request)
        talk = self._resumed(client, params.request_state)
        talk.attach(context, params.input_responses)
        task: asyncio.Task[T] | None = talk.task
        waiting = False
        try:
            if task is None:
                task = await begin(client, talk)
                talk.follow(task)
            if is_old(context):
                ended_with(context.request, task)
            waiting = not await talk.turn()
            if waiting:
                return Turn(task, questions=self._asked(client, talk))
        except BaseException:
            waiting = False
            raise
        finally:
            talk.detach()
            if task is not None and not waiting:
                task.cancel()  # once; it winds down by itself
        if task.cancelled():
            raise _called_off()
        return Turn(task, incapable=_incapable(talk) if talk.needs and not is_old(context) else None)

    def _resumed(self, client: str, state: str | None) -> Talk:
        if state is None:
            return Talk()
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        talk = self._talks.take(client, state)
        if talk is None:  # answered already, or too late
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState")
        return talk

    def _asked(self, client: str, talk: Talk) -> InputRequiredResult:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, InputRequiredResult

        state = self._talks.park(client, talk)
        if state is None:
            raise MCPError(INTERNAL_ERROR, "Too many calls of this client wait for its answers")
        return InputRequiredResult(input_requests=talk.questions(), request_state=state)


def _called_off() -> MCPError:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR

    return MCPError(INTERNAL_ERROR, "The call was called off")


def _incapable(talk: Talk) -> MCPError:
    from mcp.shared.exceptions import MCPError
    from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

    needs = capabilities(talk.needs)
    message = f"The client did not declare what this needs: {', '.join(needs)}"
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": needs})
