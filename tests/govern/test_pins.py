"""Tools against their pins: what fits, what is held back, and why."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.govern import pins
from luthier.govern.pins import Judgement, Mark
from luthier.tools import Manifest, Tool
from luthier.uri import ToolUri


def tool(name: str = "play", *, digest: str = "d", **definition: Any) -> Tool:
    raw = {"name": name, "inputSchema": {"type": "object"}, **definition}
    return Tool(uri=ToolUri.mcp("lute", name), input_schema=raw["inputSchema"], raw=raw, digest=digest)


def marks(*tools: Tool) -> dict[str, Mark]:
    return {name: Mark(pin.hash, pin.raw) for name, pin in pins.pinned(tools, at=0, by="me").items()}


def listed(*tools: Tool) -> Manifest:
    return Manifest(server="lute", tools=tools)


def test_a_tool_of_the_same_bytes_fits_whatever_else() -> None:
    mark = Mark("another hash", "d")
    assert pins.fits(tool(), mark)


def test_a_tool_of_other_bytes_fits_if_it_says_the_same() -> None:
    there = marks(tool(description="a", title="t"))["play"]
    assert pins.fits(tool(title="t", description="a", digest="e"), there)
    assert not pins.fits(tool(title="t", description="b", digest="e"), there)
    assert not pins.fits(tool(), None)


def test_without_bytes_the_definition_decides() -> None:
    there = marks(tool(digest=""))["play"]
    assert pins.fits(tool(digest=""), there)
    assert not pins.fits(tool(digest="", title="t"), there)


def test_what_changed_and_what_is_new_is_held_back_and_what_is_gone_is_told() -> None:
    there = marks(tool("play"), tool("tune"), tool("gone"))
    judgement = pins.judge(listed(tool("play"), tool("tune", digest="e", title="t"), tool("string")), there)
    assert [one.name for one in judgement.manifest.tools] == ["play"]
    assert judgement.held == {"tune": "changed", "string": "new"}
    assert judgement.removed == ("gone",)
    assert [judgement.why(name) for name in ("play", "tune", "string", "never")] == ["", "changed", "new", ""]


def test_a_list_that_fits_is_handed_on_as_it_is() -> None:
    manifest = listed(tool("play"), tool("tune"))
    assert pins.judge(manifest, marks(*manifest.tools)).manifest is manifest


def test_of_a_server_that_waits_every_tool_waits() -> None:
    assert Judgement(listed(), waiting=True).why("anything") == "waiting"


def test_what_cannot_be_spelled_gets_no_pin_and_equals_nothing() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"not": deep}
    one = tool(inputSchema=deep, digest="e")
    assert pins.pinned([one], at=0, by="me") == {}
    assert pins.hash_of(one) == pins.NO_HASH
    assert not pins.fits(one, Mark(pins.NO_HASH, ""))
    assert not pins.is_equal(one, tool(inputSchema=deep, digest="f"))


def test_two_readings_are_equal_by_bytes_or_by_what_they_say() -> None:
    one = tool(description="a")
    assert pins.is_equal(one, one)
    assert pins.is_equal(one, tool(description="b"))  # the same bytes, so it was not
    assert pins.is_equal(one, tool(description="a", digest="e"))
    assert not pins.is_equal(one, tool(description="b", digest="e"))


@pytest.mark.parametrize("value", [5, "x", [], {"play": 1}, {"play": {"hash": "h"}}, {"play": {"hash": 1}}])
def test_what_holds_no_pins_is_not_taken_for_some(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|required"):
        pins.marks_in(value)
    with pytest.raises(ValueError, match=r"Expected|required"):
        pins.pins_in(value)


def test_a_review_sets_each_tool_beside_its_pin() -> None:
    import msgspec

    stored = msgspec.to_builtins(pins.pinned([tool("play"), tool("tune"), tool("gone")], at=3, by="me"))
    review = pins.review(listed(tool("new"), tool("tune", digest="e", title="t"), tool("play")), stored)
    assert [(one.name, one.why) for one in review.tools] == [
        ("new", "new"), ("tune", "changed"), ("play", ""), ("gone", "removed"),
    ]  # fmt: skip
    assert [one.name for one in review.pending] == ["new", "tune", "gone"]
    assert not review.first
    assert pins.review(listed(tool("new")), None).first


@pytest.mark.parametrize(
    ("why", "said", "command"),
    [
        ("changed", "its definition changed", "luthier tools approve lute play`"),
        ("new", "is new", "luthier tools approve lute play`"),
        ("waiting", "wait for approval", "luthier tools approve lute`"),
    ],
)
def test_a_refusal_names_rule_place_and_command(why: pins.Why, said: str, command: str) -> None:
    denial = pins.held_denial(ToolUri.mcp("lute", "play"), why)
    assert said in denial.reason
    assert command in denial.hint
    assert "luthier tools diff lute" in denial.hint
    assert (denial.kind, denial.rule, denial.place) == ("approval", "pins", "pins of server 'lute'")
