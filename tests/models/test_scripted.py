"""The scripted model: what may stand in its script."""

from __future__ import annotations

import asyncio

import pytest

from luthier.errors import ModelError
from luthier.models import Answer, Message, Turn, Usage
from luthier.testing import ScriptedModel

TURN = Turn(model="m", system="Be short.", messages=(Message("user", "How are you?"),))


async def test_answers_come_in_their_order_and_what_was_asked_is_kept() -> None:
    model = ScriptedModel(["one", {"two": 2}])
    assert [(await model.turn(TURN)).text, (await model.turn(TURN)).text] == ["one", '{"two":2}']
    assert model.turns == [TURN, TURN]


async def test_a_script_that_is_used_up_says_so() -> None:
    model = ScriptedModel(["one"])
    await model.turn(TURN)
    with pytest.raises(ModelError, match="no answer to turn 2"):
        await model.turn(TURN)


async def test_a_function_answers_every_turn() -> None:
    model = ScriptedModel(lambda turn: turn.messages[-1].content.upper())
    assert (await model.turn(TURN)).text == "HOW ARE YOU?"
    assert (await model.turn(TURN)).text == "HOW ARE YOU?"


async def test_a_function_may_be_async_and_may_give_whatever_an_answer_can_be() -> None:
    async def answer(turn: Turn) -> object:
        await asyncio.sleep(0)
        return lambda _: Answer(text="deep", model=turn.model, stop="length")

    model = ScriptedModel([answer])
    assert (await model.turn(TURN)).stop == "length"


async def test_an_exception_is_raised() -> None:
    with pytest.raises(ModelError, match="busy"):
        await ScriptedModel([ModelError("busy")]).turn(TURN)


async def test_tokens_are_words() -> None:
    answer = await ScriptedModel(["very well thanks"]).turn(TURN)
    assert answer.usage == Usage(input_tokens=5, output_tokens=3)


async def test_it_tells_that_it_was_closed() -> None:
    model = ScriptedModel([])
    await model.close()
    assert model.closed
