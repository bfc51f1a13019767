"""Tools against their pins: what fits, what is held back, and why."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.govern import pins
from luthier.govern.pins import Judgement, Pin
from luthier.tools import Manifest, Tool
from luthier.uri import ToolUri


def tool(name: str = "play", *, digest: str = "d", **definition: Any) -> Tool:
    raw = {"name": name, "inputSchema": {"type": "object"}, **definition}
    return Tool(uri=ToolUri.mcp("lute", name), input_schema=raw["inputSchema"], raw=raw, digest=digest)


def pin(tool: Tool) -> Pin:
    return pins.pinned([tool], at=0, by="me")[tool.name]


def listed(*tools: Tool) -> Manifest:
    return Manifest(server="lute", tools=tools)


def judged(manifest: Manifest, *pinned: Tool) -> Judgement:
    there = pins.pinned(pinned, at=0, by="me")
    return pins.judge(manifest, {name: pin.raw for name, pin in there.items()}, there)


def test_a_tool_of_the_same_bytes_fits_whatever_else() -> None:
    assert pins.fits(tool(title="a"), pin(tool(title="b")))


def test_a_tool_of_other_bytes_fits_if_it_says_the_same() -> None:
    there = pin(tool(description="a", title="t"))
    assert pins.fits(tool(title="t", description="a", digest="e"), there)
    assert not pins.fits(tool(title="t", description="b", digest="e"), there)
    assert not pins.fits(tool(), None)


def test_without_bytes_the_definition_decides() -> None:
    there = pin(tool(digest=""))
    assert pins.fits(tool(digest=""), there)
    assert not pins.fits(tool(digest="", title="t"), there)


def test_the_hash_of_a_pin_is_that_of_its_definition_and_is_kept_where_it_is_known() -> None:
    one = pin(tool(description="a"))
    assert one.full_hash == pins.hash_of(tool(description="a"))
    assert Pin("d", {}, 0, "me", hash="known").full_hash == "known"


def test_of_a_tool_that_is_only_known_by_its_parts_they_are_the_definition() -> None:
    local = Tool(uri=ToolUri.mcp("lute", "play"), input_schema={"type": "object"})
    assert pins.definition_of(local) == {"name": "play", "inputSchema": {"type": "object"}}


def test_what_changed_and_what_is_new_is_held_back_and_what_is_gone_is_told() -> None:
    manifest = listed(tool("play"), tool("tune", digest="e", title="t"), tool("string"))
    judgement = judged(manifest, tool("play"), tool("tune"), tool("gone"))
    assert [one.name for one in judgement.manifest.tools] == ["play"]
    assert judgement.held == {"tune": "changed", "string": "new"}
    assert judgement.removed == ("gone",)
    assert [judgement.why(name) for name in ("play", "tune", "string", "never")] == ["", "changed", "new", ""]


def test_where_bytes_differ_and_no_definition_is_at_hand_the_answer_is_no() -> None:
    assert pins.judge(listed(tool(digest="e")), {"play": "d"}).held == {"play": "changed"}


def test_a_list_that_fits_is_handed_on_as_it_is() -> None:
    manifest = listed(tool("play"), tool("tune", digest="e"))
    assert judged(manifest, tool("play"), tool("tune")).manifest is manifest


def test_of_a_server_that_waits_every_tool_waits() -> None:
    assert Judgement(listed(), waiting=True).why("anything") == "waiting"


def test_what_cannot_be_spelled_equals_nothing() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"not": deep}
    one, other = tool(inputSchema=deep, digest="e"), tool(inputSchema=deep, digest="f")
    assert pins.hash_of(one) == pin(other).full_hash == pins.NO_HASH
    assert not pins.fits(one, pin(other))
    assert not pins.is_equal(one, other)


def test_two_readings_are_equal_by_bytes_or_by_what_they_say() -> None:
    one = tool(description="a")
    assert pins.is_equal(one, one)
    assert pins.is_equal(one, tool(description="b"))  # the same bytes, so it was not
    assert pins.is_equal(one, tool(description="a", digest="e"))
    assert not pins.is_equal(one, tool(description="b", digest="e"))


@pytest.mark.parametrize("value", [5, "x", [], {"play": 1}, {"play": {"raw": "r"}}, {"play": {"raw": 1}}])
def test_what_holds_no_pins_is_not_taken_for_some(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|required"):
        pins.pins_in(value)


def test_a_review_sets_each_tool_beside_its_pin() -> None:
    stored = pins.stored(pins.pinned([tool("play"), tool("tune"), tool("gone")], at=3, by="me"))
    now = tool("new"), tool("tune", digest="e", title="t"), tool("play")
    review = pins.review(listed(*now), stored)
    there = pins.pins_in(stored)
    assert [one.tool for one in review.tools] == [*now, None]
    assert [one.pin for one in review.tools] == [None, there["tune"], there["play"], there["gone"]]
    assert [one.hash for one in review.tools] == [*map(pins.hash_of, now), ""]
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


def test_the_hash_of_a_tool_is_worked_out_once_and_very_many_are_let_go() -> None:
    hashes = pins.Hashes()
    tools = [tool(description=f"{number}") for number in range(pins.Hashes.MOST + 1)]
    assert [hashes.of(one) for one in tools] == [pins.hash_of(one) for one in tools]
    assert hashes.of(tools[-1]) is hashes.of(tools[-1])
    assert hashes.count == 1
