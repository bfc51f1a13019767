"""What every model keeps to: the scripted one, and the two tongues through their real SDKs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.errors import ModelError, ModelUnreachableError
from luthier.models import Message, Model, ScriptedModel, Turn, Usage
from luthier.models.providers import Connection, ProviderModel
from luthier.secrets import Secret
from tests.models.loopback import loopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KINDS = ["scripted", "openai", "anthropic"]
REAL = KINDS[1:]
SCHEMA = {"type": "object", "properties": {"mood": {"type": "string"}}, "required": ["mood"]}


def turn(**rest: Any) -> Turn:
    return Turn(model="m-1", messages=(Message("user", "How are you?"),), **rest)


def connected(kind: Any, base: str, key: str | None = "the-key") -> ProviderModel:
    url = f"{base}/v1" if kind == "openai" else base
    secret = Secret(key) if key else None
    return ProviderModel(lambda: Connection(id=kind, kind=kind, base_url=url, key=secret))


@asynccontextmanager
async def answering(kind: str, *says: Any) -> AsyncIterator[Model]:
    """A model that gives these answers."""
    if kind == "scripted":
        yield ScriptedModel(says)
        return
    async with loopback() as provider:
        model = connected(kind, provider.base)
        try:
            provider.says = says[0]
            yield model
        finally:
            await model.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_comes_back_with_its_usage(kind: str) -> None:
    async with answering(kind, "Good day to you.") as model:
        answer = await model.turn(turn())
    assert answer.text == "Good day to you."
    assert answer.value is msgspec.UNSET
    assert answer.stop == "end"
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer.model.startswith("m-1")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_schema_brings_a_value(kind: str) -> None:
    async with answering(kind, {"mood": "fine"}) as model:
        answer = await model.turn(turn(schema=SCHEMA))
    assert answer.value == {"mood": "fine"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_that_is_json_is_a_value_too(kind: str) -> None:
    async with answering(kind, '```json\n{"mood": "fine"}\n```') as model:
        answer = await model.turn(turn(schema=SCHEMA))
    assert answer.value == {"mood": "fine"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_that_is_no_json_is_no_value(kind: str) -> None:
    async with answering(kind, "I am fine.") as model:
        answer = await model.turn(turn(schema=SCHEMA))
    assert answer.text == "I am fine."
    assert answer.value is msgspec.UNSET


@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_that_is_closed_can_be_closed_again(kind: str) -> None:
    async with answering(kind, "Good day.") as model:
        await model.turn(turn())
        await model.close()
        await model.close()


@pytest.mark.parametrize("kind", REAL)
async def test_the_request_says_what_was_asked_and_a_temperature_of_0_is_0(kind: str) -> None:
    messages = (Message("user", "Hello"), Message("assistant", "Hello."), Message("user", "And?"))
    asked = Turn(
        model="m-1",
        messages=messages,
        system="Be short.",
        temperature=0,
        max_tokens=50,
        top_p=0.5,
        frequency_penalty=0.25,
        presence_penalty=-1.0,
        stop=("END",),
        seed=7,
    )
    async with loopback() as provider:
        model = connected(kind, provider.base)
        await model.turn(asked)
        await model.close()
    (request,) = provider.asked
    assert request.key == "the-key"
    assert request.headers["content-type"] == "application/json"
    body = request.body
    assert body["model"] == "m-1"
    assert body["temperature"] == 0
    assert body["top_p"] == 0.5
    assert not body.get("stream")
    if kind == "openai":
        assert request.path == "/v1/chat/completions"
        system, *rest = body["messages"]
        assert system == {"role": "system", "content": "Be short."}
        assert [(one["role"], one["content"]) for one in rest] == [
            (message.role, message.content) for message in messages
        ]
        assert (body["max_completion_tokens"], body["stop"], body["seed"]) == (50, ["END"], 7)
        assert (body["frequency_penalty"], body["presence_penalty"]) == (0.25, -1.0)
        assert "response_format" not in body
    else:
        assert request.path == "/v1/messages"
        assert request.headers["anthropic-version"]
        assert body["system"] == "Be short."
        assert [(one["role"], one["content"][0]["text"]) for one in body["messages"]] == [
            (message.role, message.content) for message in messages
        ]
        assert (body["max_tokens"], body["stop_sequences"]) == (50, ["END"])
        assert not {"frequency_penalty", "presence_penalty"} & body.keys()
        assert "tools" not in body


@pytest.mark.parametrize("kind", REAL)
async def test_what_is_not_set_is_left_to_the_provider(kind: str) -> None:
    async with loopback() as provider:
        model = connected(kind, provider.base)
        await model.turn(turn())
        await model.close()
    (request,) = provider.asked
    assert not {"temperature", "top_p", "stop", "stop_sequences", "seed", "system"} & set(request.body)


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("schema", [SCHEMA, {"type": "object"}, {"type": "object", "required": ["a"]}])
async def test_a_schema_goes_out_as_it_was_written(kind: str, schema: dict[str, Any]) -> None:
    async with loopback() as provider:
        model = connected(kind, provider.base)
        await model.turn(turn(schema=schema))
        await model.close()
    body = provider.asked[0].body
    if kind == "openai":
        wanted = body["response_format"]["json_schema"]
        assert body["response_format"]["type"] == "json_schema"
        assert (wanted["schema"], wanted.get("strict", False)) == (schema, False)
    else:
        (tool,) = body["tools"]
        assert tool["input_schema"] == schema
        assert body["tool_choice"]["type"] in ("any", "tool")


@pytest.mark.parametrize("kind", REAL)
async def test_a_schema_that_is_no_object_travels_inside_one(kind: str) -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    async with loopback() as provider:
        provider.says = {"value": [1, 2]}
        model = connected(kind, provider.base)
        answer = await model.turn(turn(schema=schema))
        await model.close()
    assert answer.value == [1, 2]
    body = provider.asked[0].body
    sent = (
        body["response_format"]["json_schema"]["schema"]
        if kind == "openai"
        else body["tools"][0]["input_schema"]
    )
    assert sent["properties"] == {"value": {"type": "array", "items": {"$ref": "#/$defs/n"}}}
    assert sent["$defs"] == {"n": {"type": "integer"}}


@pytest.mark.parametrize("kind", REAL)
async def test_usage_counts_what_the_cache_read_among_the_input(kind: str) -> None:
    async with answering(kind, "Good day.") as model:
        answer = await model.turn(turn())
    assert answer.usage == Usage(input_tokens=12, output_tokens=5, cache_read_tokens=4)
    assert answer.request_id == "answer-1"


@pytest.mark.parametrize(("kind", "word"), [("openai", "length"), ("anthropic", "max_tokens")])
async def test_an_answer_that_was_cut_off_says_so(kind: str, word: str) -> None:
    async with loopback() as provider:
        provider.stop = word
        model = connected(kind, provider.base)
        answer = await model.turn(turn())
        await model.close()
    assert answer.stop == "length"


# What goes wrong

FAULT = '{"type": "error", "error": {"type": "made_up_error", "message": "The moon is full."}}'


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, False), (404, False), (500, True)])
async def test_a_status_is_an_error_with_its_facts(kind: str, status: int, retryable: bool) -> None:  # noqa: FBT001
    async with loopback() as provider:
        provider.response = (status, {"x-request-id": "req-9", "request-id": "req-9"}, FAULT)
        model = connected(kind, provider.base)
        with pytest.raises(ModelError) as caught:
            await model.turn(turn())
        await model.close()
    assert len(provider.asked) == 1
    error = caught.value
    assert error.kind == "model"
    assert error.facts() == {
        "provider": kind,
        "model": "m-1",
        "status": status,
        "type": "made_up_error",
        "request_id": "req-9",
        "retry_after": None,
    }
    assert error.retryable == retryable
    assert "The moon is full" in error.message
    assert "the-key" not in str(error)


@pytest.mark.parametrize("kind", REAL)
async def test_too_many_requests_tell_when_to_ask_again(kind: str) -> None:
    async with loopback() as provider:
        provider.response = (429, {"retry-after": "7"}, FAULT)
        model = connected(kind, provider.base)
        with pytest.raises(ModelError) as caught:
            await model.turn(turn())
        await model.close()
    assert len(provider.asked) == 1
    assert (caught.value.status, caught.value.retry_after) == (429, 7)
    assert caught.value.retryable


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("body", ["{not json", "[]", '{"id": 1}', '"text"', "null"])
async def test_an_answer_that_is_none_is_an_error(kind: str, body: str) -> None:
    async with loopback() as provider:
        provider.response = (200, {}, body)
        model = connected(kind, provider.base)
        with pytest.raises(ModelError, match=r"not be understood|ended before"):
            await model.turn(turn())
        await model.close()


@pytest.mark.parametrize("kind", REAL)
async def test_a_redirect_is_not_followed(kind: str) -> None:
    async with loopback() as elsewhere, loopback() as provider:
        provider.response = (307, {"location": f"{elsewhere.base}/v1/messages"}, "")
        model = connected(kind, provider.base)
        with pytest.raises(ModelError):
            await model.turn(turn())
        await model.close()
    assert elsewhere.asked == []


@pytest.mark.parametrize("kind", REAL)
async def test_a_connection_that_ends_is_an_error_and_is_not_tried_again(kind: str) -> None:
    async with loopback() as provider:
        provider.behave = "drop"
        model = connected(kind, provider.base)
        with pytest.raises(ModelError, match="ended before") as caught:
            await model.turn(turn())
        await model.close()
    assert len(provider.asked) == 1
    assert caught.value.kind == "model"


@pytest.mark.parametrize("kind", REAL)
async def test_a_provider_that_is_not_there_is_told_so(kind: str) -> None:
    async with loopback() as provider:
        base = provider.base
    model = connected(kind, base)
    with pytest.raises(ModelUnreachableError, match="cannot be reached") as caught:
        await model.turn(turn())
    await model.close()
    assert caught.value.kind == "connect"
    assert not caught.value.sent


@pytest.mark.parametrize("kind", REAL)
async def test_a_turn_that_is_cancelled_closes_its_connection(kind: str) -> None:
    async with loopback() as provider:
        provider.behave = "hang"
        model = connected(kind, provider.base)
        task = asyncio.create_task(model.turn(turn()))
        await provider.arrived.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        await provider.gone.wait()
        await model.close()


@pytest.mark.parametrize("kind", REAL)
async def test_a_local_provider_needs_no_key(kind: str) -> None:
    async with loopback() as provider:
        model = connected(kind, provider.base, key=None)
        assert (await model.turn(turn())).text == "Good day."
        await model.close()


@pytest.mark.parametrize("kind", REAL)
async def test_no_prompt_gets_into_a_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with answering(kind, "Good day.") as model:
        await model.turn(turn())
    assert "How are you?" not in caplog.text
    assert "Good day" not in caplog.text


def missing(kind: str, package: str) -> str:
    """What a turn says in an interpreter that does not have a package."""
    code = (
        "import asyncio, sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from luthier.models import Message, Turn\n"
        "from luthier.models.providers import Connection, ProviderModel\n"
        f"model = ProviderModel(lambda: Connection(id='house', kind={kind!r}))\n"
        "try:\n"
        "    asyncio.run(model.turn(Turn(model='m', messages=(Message('user', '?'),))))\n"
        "except Exception as error:\n"
        "    print(error.kind, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "package"), [("openai", "openai"), ("anthropic", "anthropic"), ("openai", "pydantic_ai")]
)
def test_a_missing_package_is_an_error_with_the_command_that_installs_it(kind: str, package: str) -> None:
    said = missing(kind, package)
    assert said.startswith("model ")
    assert f"pip install 'luthier[{kind}]'" in said
