"""The models of a project: keys, addresses and who is asked, up to a real SDK and a loopback provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.spec import Provider
from luthier.testing import ScriptedModel
from tests.models.loopback import loopback

if TYPE_CHECKING:
    from pathlib import Path

ASK = {"model": "m", "messages": [{"role": "user", "content": "Well?"}]}


def think(**config: Any) -> dict[str, Any]:
    step = {"name": "a", "operation": "think", "config": {"prompt": "Well?", **config}}
    return {"ensemble": "e", "agents": [step], "outputs": "${a.output}"}


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_step_asks_a_real_provider_with_the_key_that_a_reference_gives(
    kind: str, tmp_path: Path
) -> None:
    async with loopback() as provider:
        file = tmp_path / "luthier.yaml"
        keys = f"type: {kind}, base_url: '{provider.base}', api_key: '${{env.HOUSE_KEY}}', model: m-1"
        file.write_text(f"providers: {{house: {{{keys}, prices: {{m-1: {{input: 1, output: 2}}}}}}}}\n")
        provider.says = {"mood": "good"}
        async with Runtime.open(file, environ={"HOUSE_KEY": "k-1"}) as rt:
            schema = {"type": "object", "properties": {"mood": {"type": "string"}}}
            done = await rt.run(think(temperature=0, schema=schema, systemPrompt="Be short."))
        assert done.output == {"mood": "good"}, done.error
        (asked,) = provider.asked
        assert asked.key == "k-1"
        assert asked.body["temperature"] == 0
        meta = done.steps["a"].output["_meta"]
        assert (meta["usage"]["inputTokens"], meta["cost"]) == (12, 22e-6)


async def test_what_python_gives_answers_in_place_of_a_provider_and_is_closed() -> None:
    model = ScriptedModel(["Fine."])
    async with Runtime.open({}, models={"house": model}) as rt:
        result = await rt.call("builtin://model/house", ASK)
    assert result.content["text"] == "Fine."
    assert model.closed


@pytest.mark.parametrize(
    ("entry", "environ", "said"),
    [
        ({"type": "openai", "api_key": "${env.NONE}"}, {}, "NONE is not set"),
        (
            {"type": "openai", "base_url": "${env.WHERE}"},
            {"WHERE": "http://127.0.0.1:1"},
            "address of the provider",
        ),
        ({"type": "openai", "base_url": "${env.WHERE}"}, {"WHERE": "ftp://x"}, "address of the provider"),
    ],
)
async def test_a_provider_that_cannot_be_asked_says_why(entry: Any, environ: Any, said: str) -> None:
    async with Runtime.open({"providers": {"house": entry}}, environ=environ) as rt:
        done = await rt.run(think(provider="house", model="m"))
    assert done.error is not None
    assert done.error["kind"] == "connect"
    assert said in done.error["message"]


async def test_a_private_address_from_a_reference_may_be_asked_where_the_entry_says_so() -> None:
    async with loopback() as provider:
        entry = {"type": "anthropic", "base_url": "${env.WHERE}", "allow_private": True}
        async with Runtime.open({"providers": {"house": entry}}, environ={"WHERE": provider.base}) as rt:
            done = await rt.run(think(provider="house", model="m"))
    assert done.output == "Good day."


async def test_a_provider_without_a_kind_has_no_model_of_its_own() -> None:
    async with Runtime.open({}, models={"house": ScriptedModel([])}) as rt:
        project = rt.project
    assert project.providers["house"] == Provider(id="house")
    async with Runtime(project) as rt:
        done = await rt.run(think(provider="house", model="m"))
    assert done.error is not None
    assert "no model here" in done.error["message"]
