"""Real providers, by the model classes of pydantic-ai, which speak through the provider's own SDK.

All of it is loaded with the first turn. A key and an address are ours to give: the SDKs' habit of reading
them from the environment, of trying again and of following redirects is switched off, so that a turn is sent
once, to the address that was checked, with the key that belongs to it.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import msgspec

from luthier.errors import ModelError, ModelFault, ModelUnreachableError
from luthier.models.messages import Answer, Turn, Usage
from luthier.models.scripted import read_json
from luthier.models.shapes import carried, unpacked
from luthier.secrets import Secret
from luthier.text import one_line
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.models.messages import Stop

Kind = Literal["openai", "anthropic"]
"""The tongues that providers speak."""

KINDS: tuple[Kind, ...] = get_args(Kind)

ADDRESSES: dict[Kind, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}

_ANSWER = "answer"  # what the structured answer is called to the model
_MOST_TOLD = 500  # characters of what a provider says of a fault
_KEYLESS = "none"  # the SDK wants a key where a local server wants none
_STOPS: dict[str | None, Stop] = {
    "stop": "end",
    "tool_call": "end",
    "length": "length",
    "content_filter": "filter",
}
_AS_GIVEN: Any = {"json_schema_transformer": None, "supports_json_schema_output": True}
"""What we know better of every model: schemas go out as they were written."""

_TALKERS = ("openai", "anthropic", "httpx2", "httpcore2", "httpx", "httpcore")


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is, and what opens it. `key` None: it wants none."""

    id: str
    kind: Kind
    base_url: str = ""
    key: Secret | None = None


class ProviderModel:
    """The models of one provider. `connect` is asked at the first turn; what it raises, that turn raises."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._opening = asyncio.Lock()
        self._speaker: _Speaker | None = None

    async def turn(self, turn: Turn, /) -> Answer:
        """Ask once. Raises ModelError."""
        async with self._opening:  # loading takes a second, and a keyring may ask a person
            if self._speaker is None:
                self._speaker = await in_thread(lambda: _Speaker(self._connect()), name="luthier-model")
        return await self._speaker.turn(turn)

    async def close(self) -> None:
        """Let go of all connections."""
        speaker, self._speaker = self._speaker, None
        if speaker is not None:
            await speaker.close()


class _Speaker:
    """A connection with the libraries that speak for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        try:
            self._client, self._model_of = _OPENERS[connection.kind](connection)
        except ImportError as error:
            kind = connection.kind
            raise ModelError(
                f"The provider {connection.id!r} needs packages that are not installed ({error.name}).",
                provider=connection.id,
                sent=False,
                retryable=False,
                hint=f"Run: pip install 'luthier[{kind}]'",
            ) from None
        for name in _TALKERS:  # at DEBUG they write down every prompt
            logging.getLogger(name).setLevel(logging.WARNING)

    async def turn(self, turn: Turn) -> Answer:
        try:
            model = self._model_of(turn.model)
            answer = await model.request(_messages(turn), _settings(turn), self._parameters(turn))
        except Exception as error:  # noqa: BLE001  (the libraries trip over odd answers in many ways)
            self._fail(error, turn)
        return _answer(answer, turn)

    async def close(self) -> None:
        await self._client.close()

    def _parameters(self, turn: Turn) -> Any:
        """How the answer is had as JSON: by a response format, or as the arguments of a tool."""
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        if turn.schema is None:
            return ModelRequestParameters()
        schema = carried(turn.schema)
        if self._connection.kind == "openai":
            wanted = OutputObjectDefinition(json_schema=schema, name=_ANSWER, strict=False)
            return ModelRequestParameters(output_mode="native", output_object=wanted)
        tool = ToolDefinition(
            name=_ANSWER,
            parameters_json_schema=schema,
            description="Gives the answer.",
            kind="output",
            strict=False,
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)

    def _fail(self, error: Exception, turn: Turn) -> NoReturn:
        from pydantic_ai.exceptions import (
            ModelConnectionError,
            ModelHTTPError,
            UnexpectedModelBehavior,
            UserError,
        )

        provider, model = self._connection.id, turn.model
        if isinstance(error, ModelHTTPError):
            raise _refused(error, provider=provider, model=model) from error
        if isinstance(error, ModelConnectionError):
            raise _lost(error, provider=provider, model=model) from error
        why = (
            "cannot do that"
            if isinstance(error, UserError)
            else "gave an answer that could not be understood"
        )
        told = isinstance(error, UserError | UnexpectedModelBehavior)
        words = one_line(str(error), _MOST_TOLD) if told else type(error).__name__
        message = f"The model {model!r} of {provider!r} {why}: {words}"
        raise ModelError(message, provider=provider, model=model, retryable=False) from error


_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
_HINTS = {
    401: "Look at `api_key` of the provider {provider!r} in luthier.yaml.",
    403: "Look at what the key of the provider {provider!r} may do.",
    404: "Look at the name of the model, and at `base_url` of the provider {provider!r}.",
    429: "Wait, or give the step a `retry` with 429 in its `retryOn`.",
}


def _openai(connection: Connection) -> tuple[Any, Callable[[str], Any]]:
    import openai
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = openai.AsyncOpenAI(
        api_key=connection.key.reveal() if connection.key else _KEYLESS,
        base_url=connection.base_url or ADDRESSES["openai"],
        max_retries=0,
        timeout=None,
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=None),
    )
    provider = OpenAIProvider(openai_client=client)
    return client, lambda name: OpenAIChatModel(name, provider=provider, profile=_AS_GIVEN)


def _anthropic(connection: Connection) -> tuple[Any, Callable[[str], Any]]:
    import anthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = anthropic.AsyncAnthropic(
        api_key=connection.key.reveal() if connection.key else _KEYLESS,
        base_url=connection.base_url or ADDRESSES["anthropic"],
        max_retries=0,
        timeout=None,
        http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False, timeout=None),
    )
    provider = AnthropicProvider(anthropic_client=client)
    return client, lambda name: AnthropicModel(name, provider=provider, profile=_AS_GIVEN)


_OPENERS = {"openai": _openai, "anthropic": _anthropic}


def _messages(turn: Turn) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    made: list[Any] = []
    if turn.system:
        made.append(ModelRequest(parts=[SystemPromptPart(turn.system)]))
    for message in turn.messages:
        if message.role == "assistant":
            made.append(ModelResponse(parts=[TextPart(message.content)]))
        else:
            made.append(ModelRequest(parts=[UserPromptPart(message.content)]))
    return made


def _settings(turn: Turn) -> Any:
    given = {
        "temperature": turn.temperature,
        "max_tokens": turn.max_tokens,
        "top_p": turn.top_p,
        "frequency_penalty": turn.frequency_penalty,
        "presence_penalty": turn.presence_penalty,
        "seed": turn.seed,
        "stop_sequences": list(turn.stop) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _answer(response: Any, turn: Turn) -> Answer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name == _ANSWER]
    value = msgspec.UNSET
    if turn.schema is not None:
        if calls:
            text = calls[0].args_as_json_str()
        value = unpacked(read_json(text), turn.schema)
    usage = response.usage
    return Answer(
        text=text,
        model=response.model_name or turn.model,
        value=value,
        usage=Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        ),
        stop=_STOPS.get(response.finish_reason, "other"),
        request_id=response.provider_response_id or "",
    )


def _refused(error: Any, *, provider: str, model: str) -> ModelError:
    status, said = error.status_code, _said(error.body)
    return ModelError(
        f"The model {model!r} of {provider!r} was refused with status {status}{f': {said}' if said else ''}.",
        _fault(error),
        provider=provider,
        model=model,
        retryable=status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        hint=_HINTS.get(status, "").format(provider=provider),
    )


def _fault(error: Any) -> ModelFault:
    headers = error.headers or {}
    return ModelFault(
        status=error.status_code,
        type=one_line(error.provider_error_type or error.provider_error_code or "", 100),
        request_id=one_line(headers.get("x-request-id") or headers.get("request-id") or "", 200),
        retry_after=error.retry_after,
    )


def _said(body: Any) -> str:
    """The provider's own sentence on a fault."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return one_line(said, _MOST_TOLD).rstrip(".") if isinstance(said, str) else ""


def _lost(error: BaseException, *, provider: str, model: str) -> ModelError:
    causes: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        causes.append(type(seen).__name__)
        seen = seen.__cause__ or seen.__context__
    if "ConnectError" in causes:
        return ModelUnreachableError(
            f"The provider {provider!r} cannot be reached.",
            provider=provider,
            model=model,
            sent=False,
            hint=f"Look at `base_url` of the provider {provider!r}, and whether it is running.",
        )
    message = f"The connection to the provider {provider!r} ended before the model {model!r} had answered."
    return ModelError(message, provider=provider, model=model)
