"""A subscription to changes: asked for again when it ends, but never in a hurry and not for ever in vain."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import ProtocolError, WireError
from luthier.wire import Fail, Handlers, Hang, MemoryServer, Result, Session, open_session
from luthier.wire.behaviour import Listen
from luthier.wire.listening import LONGEST_WAIT, STEADY, UNHEARD
from tests.wire.support import bounded


class Announcer(MemoryServer):
    """`answers` are what subscriptions are answered with in turn, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("m", {"a": 1}, clock=FakeClock())
        self.answers = list(answers)
        self.changes = 0
        self.told: list[str] = []

    def _behaviour(self, method: str, params: dict[str, Any]) -> Any:
        if method != "subscriptions/listen":
            return super()._behaviour(method, params)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [message for message in self.received if message.get("method") == "subscriptions/listen"]

    def _changed(self) -> None:
        self.changes += 1

    async def session(self) -> tuple[Session, FakeClock]:
        clock = self.clock
        assert isinstance(clock, FakeClock)
        handlers = Handlers(on_tools_changed=self._changed, on_noise=self.told.append)
        session = await bounded(
            open_session(self.transport, server="m", clock=clock, timeout=10.0, handlers=handlers)
        )
        await settle()
        return session, clock

    async def end(self) -> None:
        """End the subscription that stands, in good order."""
        self.say(b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete"}}\n' % self.asked[-1]["id"])
        await settle()


async def test_a_subscription_that_ended_is_asked_for_again_after_a_moment() -> None:
    server = Announcer(Listen())
    _, clock = await server.session()
    await server.end()
    await clock.advance(0.9)
    assert len(server.asked) == 1
    await clock.advance(0.2)
    assert len(server.asked) == 2
    assert server.asked[1]["params"]["notifications"] == {"toolsListChanged": True}
    assert server.told == []


async def test_who_listens_is_told_of_a_change_once_the_next_subscription_stands() -> None:
    server = Announcer(Listen(), Hang(), Listen())
    _, clock = await server.session()
    assert server.changes == 0
    await server.end()
    await clock.advance(1.0)
    assert (len(server.asked), server.changes) == (2, 0)
    await server.end()
    await clock.advance(2.0)
    assert (len(server.asked), server.changes) == (3, 1)
    server.say(b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}\n')
    await settle()
    assert server.changes == 1


async def test_a_subscription_that_ends_again_and_again_is_asked_for_ever_more_seldom() -> None:
    server = Announcer(Listen())
    _, clock = await server.session()
    waits = []
    for _ in range(9):
        await server.end()
        due = clock.next_due()
        assert due is not None
        waits.append(due)
        await clock.advance(due)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, LONGEST_WAIT]


async def test_after_a_subscription_that_stood_for_a_while_the_waits_begin_anew() -> None:
    server = Announcer(Listen())
    _, clock = await server.session()
    for _ in range(4):
        await clock.advance(STEADY)
        await server.end()
        assert clock.next_due() == 1.0
        await clock.advance(1.0)


async def test_a_server_that_never_acknowledges_is_given_up_and_that_is_told() -> None:
    server = Announcer(Result({}))
    _, clock = await server.session()
    await clock.advance(3600.0)
    assert len(server.asked) == UNHEARD
    assert server.told == ["the server no longer tells of changes to its tools"]


async def test_a_server_that_knows_no_subscriptions_is_not_asked_twice() -> None:
    server = Announcer(Fail("Method not found", -32601))
    _, clock = await server.session()
    await clock.advance(3600.0)
    assert len(server.asked) == 1
    assert server.told == ["the server no longer tells of changes to its tools"]


@pytest.mark.parametrize(
    ("error", "asked"),
    [(WireError("the stream broke off"), 2), (ProtocolError("not known", code=-32601), 1)],
)
async def test_a_subscription_whose_way_broke_is_asked_for_again_unless_it_is_unknown(
    error: WireError, asked: int
) -> None:
    server = Announcer(Listen())
    _, clock = await server.session()
    receiver = server.open[0]._receiver  # noqa: SLF001  (played by the test)
    assert receiver is not None
    receiver.failed(server.asked[0]["id"], error)
    await clock.advance(1.0)
    assert len(server.asked) == asked


async def test_a_server_that_refuses_for_another_reason_is_asked_again() -> None:
    server = Announcer(Fail("too busy", -32603), Listen())
    _, clock = await server.session()
    await clock.advance(1.0)
    assert len(server.asked) == 2
    assert server.changes == 1
    assert server.told == []


@pytest.mark.parametrize("ended", [0, 1])
async def test_nothing_is_asked_after_the_end_of_the_session(ended: int) -> None:
    server = Announcer(Listen())
    session, clock = await server.session()
    for _ in range(ended):
        await server.end()
    await bounded(session.close())
    await clock.advance(3600.0)
    assert len(server.asked) == 1
    assert clock.waiting == 0


async def test_a_connection_that_was_lost_is_not_asked_again() -> None:
    server = Announcer(Listen())
    session, clock = await server.session()
    server.drop()
    await clock.advance(3600.0)
    assert session.closed
    assert len(server.asked) == 1
    assert server.told == []


async def test_a_connection_lost_before_the_next_question_is_not_asked() -> None:
    server = Announcer(Listen())
    _, clock = await server.session()
    await server.end()
    server.drop()
    await clock.advance(3600.0)
    assert len(server.asked) == 1
