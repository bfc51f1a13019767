"""Values by key: they come back with their labels, run out in time, and are never secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock
from luthier.connect import MemoryState
from luthier.outside import KvTool
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Source
from tests.outside.kit import call_of

if TYPE_CHECKING:
    from luthier.tools import Reply

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))


class Shop:
    def __init__(self, state: Any = None, name: str = "p") -> None:
        self.clock = FakeClock()
        self.state = state or MemoryState()
        self.tool = KvTool(lambda: self.state, name, self.clock)

    async def do(
        self, action: str, *, label: Label = TRUSTED, control: Label = TRUSTED, **arguments: Any
    ) -> Reply:
        call = call_of("storage/kv", {"action": action, **arguments}, label=label, control=control)
        return await self.tool.carry(call)


@pytest.mark.parametrize("value", [1, "text", [1, {"a": None}], {"x": True}, None, 0, ""])
async def test_what_was_put_is_got(value: Any) -> None:
    shop = Shop()
    assert (await shop.do("put", key="k", value=value)).content == {
        "key": "k",
        "success": True,
        "expiration": None,
    }
    got = (await shop.do("get", key="k")).content
    assert got == {"key": "k", "value": value, "found": True, "metadata": None}


async def test_what_is_not_there_is_an_answer_too() -> None:
    reply = await Shop().do("get", key="k")
    assert reply.content == {"key": "k", "value": None, "found": False, "metadata": None}
    assert (reply.is_error, reply.label) == (False, UNTRUSTED)


@pytest.mark.parametrize("label", [TRUSTED, UNTRUSTED, WEB], ids=str)
async def test_a_value_comes_back_with_the_label_that_went_in_with_it(label: Label) -> None:
    shop = Shop()
    await shop.do("put", key="k", value=1, label=label)
    assert (await shop.do("get", key="k")).label == label


async def test_what_is_put_in_a_branch_is_as_bad_as_the_branch() -> None:
    shop = Shop()
    await shop.do("put", key="k", value=1, control=WEB)
    assert (await shop.do("get", key="k")).label == WEB


@pytest.mark.parametrize("where", ["label", "control"])
async def test_nothing_secret_is_kept(where: Any) -> None:
    shop = Shop()
    reply = await shop.do("put", key="k", value="s3cret", **{where: SECRET})
    assert reply.is_error
    assert reply.content["error"]["kind"] == "denied"
    assert "s3cret" not in str(reply.content)
    assert shop.state.list("kv:p") == {}


async def test_a_label_that_cannot_be_read_is_a_strangers() -> None:
    shop = Shop()
    shop.state.put("kv:p", "k", {"value": 1, "label": "odd"})
    shop.state.put("kv:p", "l", {"value": 1})
    assert (await shop.do("get", key="k")).label == UNTRUSTED
    assert (await shop.do("get", key="l")).label == UNTRUSTED


class TestTime:
    async def test_a_value_runs_out(self) -> None:
        shop = Shop()
        put = await shop.do("put", key="k", value=1, ttl=10)
        assert put.content["expiration"] == shop.clock.now() + 10
        await shop.clock.advance(9.5)
        assert (await shop.do("get", key="k")).content["found"]
        await shop.clock.advance(0.5)
        assert (await shop.do("list")).content["keys"] == []
        assert not (await shop.do("get", key="k")).content["found"]
        assert shop.state.list("kv:p") == {}, "and is gone"

    async def test_until_a_time_of_the_calendar(self) -> None:
        shop = Shop()
        await shop.do("put", key="k", value=1, expiration=shop.clock.now() + 5)
        assert (await shop.do("get", key="k")).content["found"]
        await shop.clock.advance(5)
        assert not (await shop.do("get", key="k")).content["found"]

    async def test_both_at_once_are_refused(self) -> None:
        reply = await Shop().do("put", key="k", value=1, ttl=1, expiration=1)
        assert reply.content["error"]["kind"] == "arguments"

    async def test_another_put_takes_the_time_away(self) -> None:
        shop = Shop()
        await shop.do("put", key="k", value=1, ttl=1)
        await shop.do("put", key="k", value=2)
        await shop.clock.advance(100)
        assert (await shop.do("get", key="k")).content["value"] == 2


class TestLists:
    async def test_pages_hold_every_key_once_in_order(self) -> None:
        shop = Shop()
        for number in range(7):
            await shop.do("put", key=f"a/{number}", value=number, metadata={"n": number})
        await shop.do("put", key="b", value=0)
        names: list[str] = []
        cursor = None
        for _ in range(3):
            page = (await shop.do("list", prefix="a/", limit=3, cursor=cursor)).content
            names += [key["name"] for key in page["keys"]]
            assert all(key["metadata"] == {"n": int(key["name"][2:])} for key in page["keys"])
            cursor = page["cursor"]
            assert page["list_complete"] is (cursor is None)
        assert names == [f"a/{number}" for number in range(7)]
        assert cursor is None

    async def test_a_page_is_as_bad_as_the_keys_on_it_and_as_those_that_are_not(self) -> None:
        shop = Shop()
        assert (await shop.do("list")).label == UNTRUSTED
        await shop.do("put", key="a", value=1, label=WEB)
        await shop.do("put", key="b", value=1)
        assert (await shop.do("list")).label == WEB
        assert (await shop.do("list", prefix="b")).label == UNTRUSTED


async def test_what_is_deleted_is_gone_and_may_be_deleted_again() -> None:
    shop = Shop()
    await shop.do("put", key="k", value=1)
    for _ in range(2):
        assert (await shop.do("delete", key="k")).content == {"key": "k", "success": True}
    assert not (await shop.do("get", key="k")).content["found"]


async def test_projects_that_share_a_store_do_not_see_each_other() -> None:
    one = Shop()
    other = Shop(one.state, "q")
    await one.do("put", key="k", value=1)
    assert not (await other.do("get", key="k")).content["found"]
    assert (await other.do("list")).content["keys"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "get"}, "needs a key"),
        ({"action": "put", "key": "k"}, "needs a value"),
        ({"action": "put", "key": "k", "value": "x" * 1024 * 1024}, "can be kept"),
        ({"action": "put", "key": "k", "value": "\ud800"}, "half a character"),
    ],
)
async def test_what_cannot_be_done_is_an_error_of_the_tool(arguments: dict[str, Any], said: str) -> None:
    reply = await Shop().do(**arguments)
    assert reply.is_error
    assert said in reply.content["error"]["message"]
