"""Memory keeps values with their labels, and the tool that writes to it launders none."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.context import CallContext
from luthier.errors import NotFoundError
from luthier.memory import Memory, save_to_memory_tool
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Label, Labelled, Source
from luthier.tools import ToolCall
from luthier.tools.builtin import LocalTools
from luthier.tools.schema import Schema
from luthier.tools.source import BUILTIN_NAMES
from luthier.uri import ToolUri

GIT = Label(sources=frozenset({Source("git", "log", "c1")}))


class TestMemory:
    def test_what_was_written_is_read_with_its_label(self) -> None:
        memory = Memory()
        memory.write("notes", Labelled({"a": 1}, UNTRUSTED, {"/a": SECRET}))
        assert memory.read("notes") == Labelled({"a": 1}, UNTRUSTED, {"/a": SECRET})

    def test_labels_within_a_value_are_kept_and_what_becomes_of_it_later_does_not_count(self) -> None:
        memory, value = Memory(), [Labelled("x", UNTRUSTED)]
        memory.write("note", Labelled(value))
        value.clear()
        assert memory.read("note") == Labelled(["x"], parts={"/0": UNTRUSTED})

    def test_the_last_writing_counts_value_and_label(self) -> None:
        memory = Memory()
        memory.write("a", Labelled(1, UNTRUSTED))
        memory.write("b", Labelled(2))
        memory.write("a", Labelled(3))
        assert memory.read("a") == Labelled(3)
        assert memory.keys() == ("a", "b")

    def test_an_unknown_key_is_not_found_and_near_ones_are_told(self) -> None:
        memory = Memory()
        memory.write("summary", Labelled(1))
        with pytest.raises(NotFoundError) as caught:
            memory.read("sumary")
        assert caught.value.near == ("summary",)

    def test_two_memories_share_nothing(self) -> None:
        Memory().write("a", Labelled(1))
        assert Memory().keys() == ()


async def saved(arguments: Labelled[dict[str, Any]], control: Label = TRUSTED) -> Labelled[Any]:
    memory = Memory()
    made = save_to_memory_tool(memory)
    call = ToolCall(id="1", uri=made.tool.uri, arguments=arguments, context=CallContext(control=control))
    reply = await LocalTools([], [made]).run(call)
    assert (reply.is_error, reply.structured) == (False, {"key": arguments.value["key"], "saved": True})
    return memory.read(arguments.value["key"])


class TestSaveToMemory:
    async def test_a_value_is_kept_under_its_key(self) -> None:
        assert await saved(Labelled({"key": "k", "value": [1, None]})) == Labelled([1, None])

    async def test_it_keeps_the_label_of_the_value_and_of_each_part(self) -> None:
        kept = await saved(
            Labelled({"key": "k", "value": {"a": 1, "b": 2}}, TRUSTED, {"/value": GIT, "/value/b": UNTRUSTED})
        )
        assert (kept.label, kept.at("/a"), kept.at("/b")) == (GIT, GIT, UNTRUSTED)

    @pytest.mark.parametrize(
        ("label", "parts", "control"),
        [
            (UNTRUSTED, {}, TRUSTED),
            (TRUSTED, {"/value": UNTRUSTED}, TRUSTED),
            (TRUSTED, {"/value/0": UNTRUSTED}, TRUSTED),
            (TRUSTED, {"/key": UNTRUSTED}, TRUSTED),
            (TRUSTED, {}, UNTRUSTED),
        ],
        ids=["arguments", "value", "part of the value", "key", "branch"],
    )
    async def test_nothing_that_decided_what_is_kept_is_lost(
        self, label: Label, parts: dict[str, Label], control: Label
    ) -> None:
        kept = await saved(Labelled({"key": "k", "value": ["v"]}, label, parts), control)
        assert kept.whole == UNTRUSTED

    async def test_the_branch_taints_every_part(self) -> None:
        kept = await saved(Labelled({"key": "k", "value": {"a": 1}}, TRUSTED, {"/value/a": GIT}), UNTRUSTED)
        assert kept.at("/a") == GIT.join(UNTRUSTED)

    def test_it_is_the_built_in_tool_of_that_name(self) -> None:
        made = save_to_memory_tool(Memory())
        assert made.tool.uri == ToolUri.builtin("save_to_memory")
        assert made.tool.name in BUILTIN_NAMES
        assert made.label == TRUSTED
        assert made.tool.annotations == {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": False,
        }

    @pytest.mark.parametrize(
        ("arguments", "fits"),
        [
            ({"key": "k", "value": None}, True),
            ({"key": "k", "value": {"a": [1]}}, True),
            ({"key": "k"}, False),
            ({"value": 1}, False),
            ({"key": "", "value": 1}, False),
            ({"key": 1, "value": 1}, False),
            ({"key": "k", "value": 1, "more": 1}, False),
        ],
    )
    def test_its_schema_wants_a_key_and_any_value(self, arguments: dict[str, Any], *, fits: bool) -> None:
        assert Schema(save_to_memory_tool(Memory()).tool.input_schema).ok(arguments) is fits
