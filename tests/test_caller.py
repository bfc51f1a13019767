"""Whoever called from outside: told and asked by a line, found by the root of what it began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.caller import NO_LINE, NOBODY, Caller, Lines
from luthier.errors import CallerError
from tests.lines import ScriptedLine

if TYPE_CHECKING:
    from luthier.caller import Ability


async def test_a_form_asks_for_all_its_fields_unless_told_otherwise() -> None:
    line = ScriptedLine(elicitation={"action": "accept", "content": {"name": "Ada"}})
    caller = Caller(line)
    reaction = await caller.elicit("Who?", {"name": {"type": "string"}}, key="who")
    await caller.elicit("Who?", {"name": {"type": "string"}}, required=[])
    assert (reaction.accepted, reaction.content) == (True, {"name": "Ada"})
    schemas = [params["requestedSchema"] for _, params, _ in line.asked]
    assert [schema["required"] for schema in schemas] == [["name"], []]
    assert [key for _, _, key in line.asked] == ["who", ""]


async def test_a_form_that_was_put_away_has_no_fields() -> None:
    reaction = await Caller(ScriptedLine(elicitation={"action": "decline"})).elicit("?", {})
    assert (reaction.accepted, reaction.content) == (False, {})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "text", "text": "Paris"}, "Paris"),
        ([{"type": "text", "text": "Pa"}, {"type": "image"}, {"type": "text", "text": "ris"}], "Paris"),
        (None, ""),
    ],
)
async def test_what_a_model_said_is_read_as_text(content: Any, text: str) -> None:
    line = ScriptedLine(sampling={"role": "assistant", "content": content, "model": "m"})
    said = await Caller(line).sample("Capital?", 100, systemPrompt="Be short.")
    assert (said.text, said.model) == (text, "m")
    assert line.asked[0][1]["messages"] == [{"role": "user", "content": {"type": "text", "text": "Capital?"}}]
    assert line.asked[0][1]["systemPrompt"] == "Be short."


async def test_roots_are_a_list() -> None:
    assert await Caller(ScriptedLine(roots={"roots": [{"uri": "file:///x"}]})).roots() == [
        {"uri": "file:///x"}
    ]


@pytest.mark.parametrize("what", ["elicitation", "sampling", "roots"])
async def test_nobody_hears_and_nobody_can_be_asked(what: Ability) -> None:
    await NOBODY.log("x")
    await NOBODY.progress(1, 2)
    assert not NOBODY.can(what)
    with pytest.raises(CallerError) as caught:
        await NO_LINE.ask(what, {}, "")
    assert caught.value.facts() == {"needs": what}


def test_a_line_is_found_by_its_root_while_it_is_open() -> None:
    lines, line = Lines(), ScriptedLine()
    with lines.during("r-1", line):
        assert lines.of("r-1") is line
        assert lines.of("r-2") is NO_LINE
    assert lines.of("r-1") is NO_LINE
