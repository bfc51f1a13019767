"""Results as servers send them: read leniently, every oddity noted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from luthier.errors import ProtocolError
from luthier.tools import Reply
from luthier.wire.results import read_reply

TEXT = {"type": "text", "text": "hi"}


def reply(result: Any, *, modern: bool = False, odd: tuple[str, ...] = ()) -> Reply:
    raw = msgspec.Raw(result if isinstance(result, bytes) else msgspec.json.encode(result))
    return read_reply(raw, odd, server="s", tool="t", modern=modern)


def test_a_good_result_has_no_notes() -> None:
    read = reply({"content": [TEXT], "structuredContent": {"a": 1}, "isError": True, "_meta": {"m": 1}})
    assert read == Reply(blocks=[TEXT], structured={"a": 1}, is_error=True, meta={"m": 1})


def test_structured_content_is_used_without_an_output_schema() -> None:
    assert reply({"content": [TEXT], "structuredContent": [1, 2]}).content == [1, 2]


@pytest.mark.parametrize(
    ("result", "blocks", "note"),
    [
        ({}, [], "content is missing"),
        ({"content": None}, [], "content is null"),
        ({"content": "hi"}, [TEXT], "content is not a list"),
        ({"content": TEXT}, [TEXT], "content is not a list"),
        (
            {"content": ["hi", 5]},
            [TEXT, {"type": "text", "text": "5"}],
            "a block that is not an object was read as text",
        ),
        (
            {"content": [TEXT, {"text": "x"}]},
            [TEXT, {"text": "x"}],
            "a block without a type was kept as it is",
        ),
        ({"content": [{"type": "text"}]}, [{"type": "text"}], "a text block has no text"),
        (
            {"content": [{"type": "image", "data": "***", "mimeType": "image/png"}]},
            [{"type": "image", "data": "***", "mimeType": "image/png"}],
            "the data of a block of type image is not base64",
        ),
        (
            {"content": [{"type": "resource", "resource": {"blob": "abc"}}]},
            [{"type": "resource", "resource": {"blob": "abc"}}],
            "the data of a block of type resource is not base64",
        ),
        (
            {"content": [{"type": "audio", "data": 5}]},
            [{"type": "audio", "data": 5}],
            "the data of a block of type audio is not base64",
        ),
    ],
    ids=repr,
)
def test_an_odd_content_is_kept_and_noted(result: Any, blocks: list[Any], note: str) -> None:
    read = reply(result)
    assert (read.blocks, note in read.notes) == (blocks, True)


def test_the_same_oddity_is_noted_once() -> None:
    assert reply({"content": [1, 2, 3], "isError": False}).notes == (
        "a block that is not an object was read as text",
    )


@pytest.mark.parametrize(
    "block",
    [
        {"type": "video", "url": "x"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "x"}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "image", "data": "aG\nk=\n", "mimeType": "image/png"},
        {"type": "image", "data": "QUJD" * 5000, "mimeType": "image/png"},
    ],
    ids=lambda block: str(block)[:40],
)
def test_blocks_of_every_type_are_kept_without_a_note(block: dict[str, Any]) -> None:
    read = reply({"content": [block]})
    assert (read.blocks, read.notes) == ([block], ())


@pytest.mark.parametrize(
    "data", ["!" + "QUJD" * 5000, "QUJD" * 5000 + "!"], ids=["at its start", "at its end"]
)
def test_of_long_base64_the_ends_are_looked_at(data: str) -> None:
    assert reply({"content": [{"type": "image", "data": data}]}).notes


@pytest.mark.parametrize(
    ("flag", "meant"),
    [("true", True), ("false", False), ("No", False), (1, True), (0, False), ([1], True), ("", False)],
)
def test_an_error_flag_that_is_not_true_or_false_is_read_and_noted(flag: Any, meant: bool) -> None:  # noqa: FBT001
    read = reply({"content": [], "isError": flag})
    assert (read.is_error, read.notes) == (meant, ("isError is not true or false",))


def test_a_null_error_flag_is_no_error() -> None:
    assert reply({"content": [], "isError": None}) == Reply()


def test_null_as_structured_content_is_nothing_where_it_can_be_nothing() -> None:
    assert reply({"content": [], "structuredContent": None}).structured is UNSET
    assert reply({"content": [TEXT], "structuredContent": None}, modern=True).content == "hi"
    assert reply({"content": [], "structuredContent": None}, modern=True).structured is None


def test_a_tool_result_of_the_first_drafts_is_read() -> None:
    read = reply({"toolResult": {"a": 1}})
    assert (read.content, read.notes) == ({"a": 1}, ("toolResult was read as structuredContent",))


@pytest.mark.parametrize(
    ("result", "content"),
    [("hi", "hi"), (None, []), ([TEXT], "hi"), (5, "5"), (True, "true")],
    ids=repr,
)
def test_a_result_that_is_no_object_is_kept(result: Any, content: Any) -> None:
    read = reply(result)
    assert read.content == content
    assert "the result is not an object" in read.notes


def test_nan_goes_no_further() -> None:
    read = reply(b'{"content": [], "structuredContent": {"a": NaN, "b": [1e999]}}', odd=("something before",))
    assert read.structured == {"a": None, "b": [None]}
    assert read.notes == (
        "something before",
        "NaN was read as null",
        "a number beyond all bounds was read as null",
    )


def test_a_result_that_cannot_be_read_is_a_protocol_fault() -> None:
    with pytest.raises(ProtocolError, match="cannot be read") as caught:
        reply(b"oops")
    assert (caught.value.server, caught.value.tool) == ("s", "t")


def test_input_required_is_surfaced_whole() -> None:
    result = {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "x"}},
        "requestState": "opaque",
    }
    assert reply(result, modern=True) == Reply(input_required=result)


@pytest.mark.parametrize("kind", ["task", "", 5, None, ["complete"]], ids=repr)
def test_a_result_of_an_unknown_type_is_a_protocol_fault_in_the_modern_era(kind: Any) -> None:
    with pytest.raises(ProtocolError, match="unknown type"):
        reply({"resultType": kind, "content": []}, modern=True)
    assert reply({"resultType": kind, "content": []}) == Reply()


def test_a_modern_result_may_lack_its_type() -> None:
    assert reply({"content": [TEXT]}, modern=True) == reply(
        {"content": [TEXT], "resultType": "complete"}, modern=True
    )


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
results = st.fixed_dictionaries(
    {},
    optional={"content": json_like, "structuredContent": json_like, "isError": json_like, "_meta": json_like},
)


@given(results | json_like)
def test_any_result_gives_a_reply_whose_blocks_are_objects(result: Any) -> None:
    read = reply(result)
    assert all(isinstance(block, dict) for block in read.blocks)
    assert isinstance(read.is_error, bool)
    msgspec.json.encode(read.content)
