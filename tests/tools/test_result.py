"""What a reply says, how an envelope reads, and what leaves the house."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.taint import UNTRUSTED
from luthier.tools import Envelope, Reply, ToolResult, delivered
from luthier.tools.result import PARSED_TEXT_LIMIT
from luthier.uri import ToolUri


def text(words: object) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(reply: Reply) -> ToolResult:
    return ToolResult(uri=ToolUri.mcp("git", "log"), call_id="c1", reply=reply, duration=12.5)


def envelope(content: Any, **more: Any) -> Envelope:
    return Envelope(
        {"tool": "log", "server": "git", "content": content, "duration": 1.0, "isError": False} | more
    )


class TestContent:
    @pytest.mark.parametrize(
        ("reply", "content"),
        [
            pytest.param(
                Reply(structured={"a": 1}, blocks=[text("no")]), {"a": 1}, id="the structured value first"
            ),
            pytest.param(Reply(structured=[1, 2]), [1, 2], id="a structured list"),
            pytest.param(Reply(structured=0), 0, id="a structured zero"),
            pytest.param(Reply(structured=None, blocks=[text("no")]), None, id="a structured null"),
            pytest.param(Reply(blocks=[text('{"a": 1}')]), {"a": 1}, id="an object in a single text"),
            pytest.param(Reply(blocks=[text(' \n["a"]\n')]), ["a"], id="an array in a single text"),
            pytest.param(Reply(blocks=[text("hello")]), "hello", id="a single text"),
            pytest.param(Reply(blocks=[text("42")]), "42", id="a number in a text stays text"),
            pytest.param(Reply(blocks=[text('"a"')]), '"a"', id="a string in a text stays text"),
            pytest.param(
                Reply(blocks=[text("{not json")]), "{not json", id="what only begins like an object"
            ),
            pytest.param(Reply(blocks=[text('{"a": NaN}')]), '{"a": NaN}', id="a number that JSON has not"),
            pytest.param(Reply(blocks=[text('["\ud800"]')]), '["\ud800"]', id="a lone surrogate"),
            pytest.param(Reply(blocks=[text("")]), "", id="an empty text"),
            pytest.param(Reply(blocks=[]), [], id="no blocks"),
            pytest.param(Reply(blocks=[text("a"), text("b")]), [text("a"), text("b")], id="several blocks"),
            pytest.param(
                Reply(blocks=[{"type": "image", "data": "…"}]),
                [{"type": "image", "data": "…"}],
                id="an image",
            ),
            pytest.param(Reply(blocks=[text(7)]), [text(7)], id="a text block without text"),
        ],
    )
    def test_is(self, reply: Reply, content: Any) -> None:
        assert reply.content == content

    def test_a_text_up_to_a_mebibyte_is_parsed_and_a_longer_one_is_not(self) -> None:
        longest = "[" + " " * (PARSED_TEXT_LIMIT - 2) + "]"
        assert Reply(blocks=[text(longest)]).content == []
        assert Reply(blocks=[text(longest + " ")]).content == longest + " "

    def test_a_text_nested_deeper_than_can_be_parsed_stays_text(self) -> None:
        deep = "[" * 100_000
        assert Reply(blocks=[text(deep)]).content == deep
        deep += "]" * 100_000
        assert Reply(blocks=[text(deep)]).content == deep

    def test_is_read_once(self) -> None:
        reply = Reply(blocks=[text('{"a": 1}')])
        assert reply.content is reply.content


class TestToolResult:
    def test_gives_the_parts_of_its_reply(self) -> None:
        given = result(Reply(blocks=[text("x")], structured={"n": 1}, is_error=True, notes=("odd",)))
        assert (given.content, given.structured, given.is_error) == ({"n": 1}, {"n": 1}, True)
        assert given.blocks == [text("x")]
        assert given.label == UNTRUSTED

    def test_has_no_structured_value_where_none_was_sent(self) -> None:
        assert result(Reply(blocks=[text('{"a": 1}')])).structured is None

    def test_is_written_as_json_with_its_label_and_notes(self) -> None:
        written = result(Reply(blocks=[text("x")], notes=("odd",))).to_json()
        assert msgspec.json.decode(msgspec.json.encode(written)) == {
            "tool": "log",
            "server": "git",
            "content": "x",
            "duration": 12.5,
            "isError": False,
            "blocks": [text("x")],
            "label": UNTRUSTED.to_json(),
            "notes": ["odd"],
            "call": "c1",
        }


class TestEnvelope:
    def test_reads_its_own_fields_first_then_the_content(self) -> None:
        read = envelope({"number": 7, "duration": "long", "tool": "mine"})
        assert read["number"] == read.number == 7
        assert (read["duration"], read.tool, read.isError) == (1.0, "log", False)
        assert read["content"]["tool"] == "mine"

    def test_lists_its_own_fields_only_and_finds_members_of_the_content_too(self) -> None:
        read = envelope({"number": 7})
        assert list(read) == ["tool", "server", "content", "duration", "isError"]
        assert len(read) == 5
        assert "number" in read
        assert read.get("number") == 7
        assert read.get("missing") is None

    @pytest.mark.parametrize("content", [{"a": 1}, ["a"], "a", 1, None])
    def test_a_name_that_nothing_has_is_missing_in_both_ways_of_reading(self, content: Any) -> None:
        with pytest.raises(KeyError, match="nothing"):
            envelope(content)["nothing"]
        with pytest.raises(AttributeError, match="the result of 'log' has no 'nothing'"):
            _ = envelope(content).nothing

    def test_gives_the_blocks_of_its_result_unless_the_content_has_blocks_of_its_own(self) -> None:
        assert result(Reply(blocks=[text("x")])).envelope.blocks == [text("x")]
        assert result(Reply(structured={"blocks": 3}, blocks=[text("x")])).envelope["blocks"] == 3
        assert result(Reply(structured={"blocks": 3}, blocks=[text("x")])).envelope.raw_blocks() == [
            text("x")
        ]
        assert envelope("x").get("blocks") is None
        assert envelope("x").raw_blocks() is None

    def test_cannot_be_written_to(self) -> None:
        read = envelope({"a": 1})
        with pytest.raises(TypeError):
            read["a"] = 2
        with pytest.raises(AttributeError):
            read.a = 2  # type: ignore[attr-defined]

    def test_hands_out_its_fields_as_a_copy(self) -> None:
        read = envelope({"a": 1})
        read.fields()["content"] = "other"
        assert read["content"] == {"a": 1}

    def test_can_be_copied_pickled_and_compared(self) -> None:
        read = envelope({"a": [1]})
        for again in (copy.copy(read), copy.deepcopy(read), pickle.loads(pickle.dumps(read))):  # noqa: S301
            assert again == read
            assert again.a == [1]
        assert read == read.fields()
        assert "'tool': 'log'" in repr(read)

    def test_of_a_result_is_what_a_workflow_sees(self) -> None:
        assert result(Reply(blocks=[text("hi")])).envelope.fields() == {
            "tool": "log",
            "server": "git",
            "content": "hi",
            "duration": 12.5,
            "isError": False,
        }


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


class TestDelivered:
    @given(json_values)
    def test_what_holds_no_envelope_is_delivered_as_it_is(self, value: Any) -> None:
        assert delivered(value) == value

    @given(json_values)
    def test_envelopes_are_replaced_at_any_depth(self, value: Any) -> None:
        wrapped = {"a": [envelope(value), {"b": envelope({"c": envelope(value)})}], "d": (envelope([value]),)}
        assert delivered(wrapped) == {"a": [value, {"b": {"c": value}}], "d": [[value]]}

    def test_the_order_of_keys_is_kept(self) -> None:
        assert list(delivered({"b": 1, "a": {"z": 1, "y": 2}})) == ["b", "a"]
        assert list(delivered({"a": {"z": 1, "y": 2}})["a"]) == ["z", "y"]

    def test_what_is_delivered_shares_no_container_with_what_was_given(self) -> None:
        inner = {"x": 1}
        given = {"a": [inner]}
        delivered(given)["a"][0]["x"] = 2
        assert inner == {"x": 1}

    def test_a_value_may_be_nested_deeper_than_python_calls_functions(self) -> None:
        deep: Any = "bottom"
        for _ in range(50_000):
            deep = [envelope(deep)]
        out = delivered(deep)
        for _ in range(50_000):
            (out,) = out
        assert out == "bottom"
