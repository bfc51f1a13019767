"""The manager over servers in memory: one connection for all, times kept, nothing sent twice, an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.connect import ConnectionManager, Lesson, ServerRegistry
from luthier.connect.links import MOST_CALLERS
from luthier.context import CallContext
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    NotFoundError,
    ProtocolError,
    WireError,
)
from luthier.events import (
    CallProgressed,
    ServerFailed,
    ServerNoise,
    ServerReady,
    ServerStarting,
    ServerStopped,
)
from luthier.spec import ServerEntry
from luthier.taint import UNTRUSTED, Label, Source
from luthier.tools import Tool
from luthier.uri import ToolUri
from luthier.wire import Handlers, MemoryServer
from luthier.wire.behaviour import Delay, Drop, Fail, Hang, Progress, Result
from tests.connect.kit import House, call, wanted


def server(name: str = "lute", **tools: Any) -> MemoryServer:
    return MemoryServer(name, {"play": "a note", **tools})


# Connecting


async def test_nothing_is_connected_before_it_is_needed() -> None:
    house = House(server())
    assert house.manager.state("lute") == "idle"
    assert house.servers["lute"].connections == 0
    reply = await house.settled(house.call("lute", "play"))
    assert reply.content == "a note"
    assert house.manager.state("lute") == "ready"


async def test_any_number_of_waiting_calls_share_one_connection_and_one_list() -> None:
    house = House(server())
    async with asyncio.TaskGroup() as group:
        replies = [group.create_task(house.call("lute", "play", id=str(number))) for number in range(100)]
    assert [task.result().content for task in replies] == ["a note"] * 100
    assert house.servers["lute"].connections == 1
    assert len(_methods(house.servers["lute"], "tools/list")) == 1
    assert len(house.servers["lute"].calls) == 100


def _methods(server: MemoryServer, method: str) -> list[dict[str, Any]]:
    return [message for message in server.received if message.get("method") == method]


async def test_connecting_tells_when_it_starts_and_when_it_stands() -> None:
    house = House(server())
    await house.settled(house.manager.connect("lute"))
    starting, ready = house.notebook.events
    assert isinstance(starting, ServerStarting)
    assert (starting.server, starting.attempt, starting.at) == ("lute", 1, house.clock.now())
    assert isinstance(ready, ServerReady)
    assert (ready.server, ready.protocol) == ("lute", "2026-07-28")


async def test_all_who_wait_for_a_connection_that_fails_get_the_error_each_with_its_own_traceback() -> None:
    house = House(server(), lute={"max_retries": 0})
    house.servers["lute"].refusal = "the lute is out of tune"
    calls = [house.start(house.call("lute", "play")) for _ in range(3)]
    await settle(100)
    errors = [task.exception() for task in calls]
    assert {str(error) for error in errors} == {"the lute is out of tune"}
    assert all(isinstance(error, ConnectError) for error in errors)
    assert len({id(error) for error in errors}) == 3
    assert house.manager.state("lute") == "failed"


async def test_a_connection_is_tried_again_with_growing_waits_and_then_given_up() -> None:
    house = House(server(), lute={"max_retries": 3})
    house.servers["lute"].refusal = "not now"
    waiting = house.start(house.manager.connect("lute"))
    await settle()
    assert house.manager.state("lute") == "backoff"
    for _ in range(3):
        await house.clock.advance(4.0)
    assert waiting.done()
    assert isinstance(waiting.exception(), ConnectError)
    assert [event.attempt for event in house.notebook.of(ServerStarting)] == [1, 2, 3, 4]
    waits = [event.retry_in for event in house.notebook.of(ServerFailed)]
    assert waits[-1] is None
    for wait, nominal in zip(waits[:-1], (1.0, 2.0, 4.0), strict=True):
        assert wait is not None
        assert nominal / 2 <= wait <= nominal


async def test_a_server_that_comes_back_during_the_waits_serves_all_who_waited() -> None:
    house = House(server())
    house.servers["lute"].refusal = "not now"
    calls = [house.start(house.call("lute", "play")) for _ in range(5)]
    await settle()
    house.servers["lute"].refusal = ""
    await house.clock.advance(1.0)
    assert [(await task).content for task in calls] == ["a note"] * 5
    assert house.servers["lute"].connections == 1


async def test_a_fault_of_configuration_is_not_tried_again(tmp_path: Any) -> None:
    entry = ServerEntry(id="lute", command="bash", max_retries=10)
    manager = ConnectionManager(ServerRegistry([entry], root=tmp_path), environ={})
    with pytest.raises(ConnectError, match="not allowed") as caught:
        await manager.connect("lute")
    assert not caught.value.retryable
    assert manager.state("lute") == "failed"
    await manager.close_all()


async def test_the_next_call_after_a_failure_begins_a_new_row_of_tries() -> None:
    house = House(server(), lute={"max_retries": 0})
    house.servers["lute"].refusal = "not now"
    with pytest.raises(ConnectError):
        await house.settled(house.call("lute", "play"))
    house.servers["lute"].refusal = ""
    assert (await house.settled(house.call("lute", "play"))).content == "a note"


async def test_a_waiter_that_gives_up_does_not_stop_the_connection_of_the_others() -> None:
    house = House(server())
    house.servers["lute"].refusal = "not now"
    one, other = house.start(house.call("lute", "play")), house.start(house.call("lute", "play"))
    await settle()
    one.cancel()
    house.servers["lute"].refusal = ""
    await house.clock.advance(1.0)
    assert one.cancelled()
    assert (await other).content == "a note"


async def test_a_connection_nobody_waits_for_any_more_fails_quietly() -> None:
    house = House(server(), lute={"max_retries": 1})
    house.servers["lute"].refusal = "not now"
    only = house.start(house.call("lute", "play"))
    await settle()
    only.cancel()
    await house.clock.advance(1.0)
    assert house.manager.state("lute") == "failed"


async def test_what_was_learned_is_used_and_what_no_longer_holds_is_learned_anew() -> None:
    class Notes:
        def __init__(self) -> None:
            self.lessons: dict[str, Lesson] = {}

        def lesson(self, key: str) -> Lesson | None:
            return self.lessons.get(key)

        def remember(self, key: str, lesson: Lesson) -> None:
            self.lessons[key] = lesson

        def forget(self, key: str) -> None:
            del self.lessons[key]

    notes = Notes()
    old = MemoryServer("lute", {"play": "a note"}, era="2025-06-18")

    async def methods_of_a_start(**fields: Any) -> list[str]:
        old.received.clear()
        registry = ServerRegistry([ServerEntry(id="lute", command="python", **fields)])
        manager = ConnectionManager(registry, learned=notes, transports={"lute": old.transport}, environ={})
        await manager.connect("lute")
        await manager.close_all()
        return [message["method"] for message in old.received]

    assert "server/discover" in await methods_of_a_start()
    assert set(notes.lessons.values()) == {Lesson("2025-06-18")}
    assert "server/discover" not in await methods_of_a_start()
    assert "server/discover" in await methods_of_a_start(cwd="/")  # another configuration is another server
    assert "server/discover" not in await methods_of_a_start(protocol="2025-06-18", cwd="/tmp")
    assert len(notes.lessons) == 2


# Callers and their connections


async def test_a_server_that_is_not_shared_has_a_connection_for_each_caller() -> None:
    house = House(server(), lute={"share": False})
    ada, bob = (CallContext(principals=("operator", name)) for name in ("ada", "bob"))
    for context in (ada, bob, ada):
        await house.settled(house.call("lute", "play", context=context))
    assert house.servers["lute"].connections == 2


async def test_a_list_is_kept_for_those_only_whose_connection_it_was_read_over() -> None:
    house = House(server(), lute={"share": False})
    lute = house.servers["lute"]
    ada, bob = (CallContext(principals=("operator", name)) for name in ("ada", "bob"))
    await house.settled(house.manager.manifest("lute", context=ada))
    lute.tools["later"] = "for bob"
    for context, there in ((ada, False), (bob, True), (ada, False)):
        listed = await house.settled(house.manager.manifest("lute", context=context))
        assert (listed.find("later") is not None) == there
    assert house.manager.known(ToolUri.mcp("lute", "later"), ada) is None
    assert house.manager.known(ToolUri.mcp("lute", "later"), bob) is not None


async def test_of_very_many_callers_connections_the_one_idle_longest_is_ended() -> None:
    house = House(server(hang=Hang()), lute={"share": False})
    lute = house.servers["lute"]

    def of(name: str) -> CallContext:
        return CallContext(principals=("operator", name))

    waits = house.start(house.call("lute", "hang", context=of("busy")))
    for number in range(MOST_CALLERS):
        await house.settled(house.call("lute", "play", context=of("first")))
        await house.settled(house.call("lute", "play", context=of(f"c{number}")))
    await settle(100)
    assert len(lute.open) == MOST_CALLERS
    assert lute.connections == MOST_CALLERS + 2
    await house.settled(house.call("lute", "play", context=of("first")))
    assert (not waits.done(), lute.connections) == (True, MOST_CALLERS + 2)
    await house.settled(house.call("lute", "play", context=of("c0")))  # had been ended: begins anew
    closing = house.start(house.manager.close_all())
    await settle(200)
    assert closing.done()
    assert lute.open == []
    assert isinstance(waits.exception(), WireError)


async def test_a_shared_server_has_one_connection_for_all() -> None:
    house = House(server())
    for name in ("ada", "bob"):
        await house.settled(house.call("lute", "play", context=CallContext(principals=(name,))))
    assert house.servers["lute"].connections == 1


async def test_an_unknown_server_is_not_found_and_near_names_are_told() -> None:
    house = House(server())
    with pytest.raises(NotFoundError) as caught:
        await house.manager.manifest("flute")
    assert caught.value.near == ("lute",)
    with pytest.raises(NotFoundError):
        house.manager.state("flute")
    with pytest.raises(NotFoundError):
        await house.manager.connect("flute")


# Times


async def test_a_call_without_a_time_of_its_own_has_thirty_seconds() -> None:
    house = House(server(wait=Hang()))
    waiting = house.start(house.call("lute", "wait"))
    await house.clock.advance(29.9)
    assert not waiting.done()
    await house.clock.advance(0.2)
    error = waiting.exception()
    assert isinstance(error, CallTimeoutError)
    assert error.sent
    assert len(house.servers["lute"].cancelled) == 1


@pytest.mark.parametrize(
    ("entry", "own", "deadline", "expected"),
    [
        ({"tool_timeout": 5.0}, None, None, 5.0),
        ({"tool_timeout": 5.0}, 2.0, None, 2.0),
        ({"tool_timeout": 5.0}, 60.0, None, 60.0),
        ({"tool_timeout": 5.0}, None, 3.0, 3.0),
        ({"tool_timeout": 5.0}, 60.0, 4.0, 4.0),
        ({}, None, 1000.0, 30.0),
    ],
)
async def test_the_calls_own_time_wins_over_the_entrys_and_the_deadline_bounds_both(
    entry: dict[str, Any], own: float | None, deadline: float | None, expected: float
) -> None:
    house = House(server(wait=Hang()), lute=entry)
    await house.settled(house.manager.manifest("lute"))
    waiting = house.start(house.call("lute", "wait", timeout=own, context=CallContext(deadline=deadline)))
    await house.clock.advance(expected - 0.1)
    assert not waiting.done()
    await house.clock.advance(0.2)
    assert isinstance(waiting.exception(), CallTimeoutError)


async def test_progress_extends_a_servers_time_up_to_ten_times_and_no_further() -> None:
    house = House(server(slow=Progress(100, every=4.0, then="done")), lute={"tool_timeout": 5.0})
    waiting = house.start(house.call("lute", "slow"))
    await house.clock.advance(49.0)
    assert not waiting.done()
    await house.clock.advance(2.0)
    assert isinstance(waiting.exception(), CallTimeoutError)


async def test_progress_extends_a_servers_time_up_to_its_own_longest() -> None:
    house = House(
        server(slow=Progress(100, every=4.0, then="done")),
        lute={"tool_timeout": 5.0, "tool_timeout_max": 9.0},
    )
    waiting = house.start(house.call("lute", "slow"))
    await house.clock.advance(8.5)
    assert not waiting.done()
    await house.clock.advance(1.0)
    assert isinstance(waiting.exception(), CallTimeoutError)


@pytest.mark.parametrize("options", [{"timeout": 5.0}, {"context": CallContext(deadline=5.0)}])
async def test_progress_extends_neither_a_calls_own_time_nor_a_deadline(options: dict[str, Any]) -> None:
    house = House(server(slow=Progress(100, every=1.0, then="done")))
    waiting = house.start(house.call("lute", "slow", **options))
    await house.clock.advance(4.9)
    assert not waiting.done()
    await house.clock.advance(0.2)
    assert isinstance(waiting.exception(), CallTimeoutError)


async def test_progress_is_told_with_the_call_it_belongs_to() -> None:
    house = House(server(slow=Progress(2, every=1.0, then="done")))
    context = CallContext(run="r1", step="s1")
    waiting = house.start(house.call("lute", "slow", id="c7", context=context))
    await house.clock.advance(3.0)
    assert (await waiting).content == "done"
    events = house.notebook.of(CallProgressed)
    assert [(event.call_id, event.progress, event.total, event.message) for event in events] == [
        ("c7", 1, 2, "step 1"),
        ("c7", 2, 2, "step 2"),
    ]
    assert {(event.run, event.step, str(event.uri)) for event in events} == {("r1", "s1", "mcp://lute/slow")}
    label = UNTRUSTED.join(Label(sources=frozenset({Source("lute", "slow", "c7")})))
    assert {event.label for event in events} == {label}


@pytest.mark.parametrize("options", [{"timeout": 2.0}, {"context": CallContext(deadline=2.0)}])
async def test_a_calls_time_runs_while_its_server_is_being_connected(options: dict[str, Any]) -> None:
    house = House(server(), lute={"max_retries": 5})
    lute = house.servers["lute"]
    found = (await house.settled(house.manager.manifest("lute"))).find("play")
    assert found is not None
    await house.manager.reconnect("lute")
    lute.refusal = "not now"
    waiting = house.start(house.manager.carry(wanted("lute", "play", **options), found))
    await house.clock.advance(2.1)
    error = waiting.exception()
    assert isinstance(error, CallTimeoutError)
    assert not error.sent
    assert "connected" in error.message
    assert error.hint == "The last try failed: not now"
    assert lute.calls == []


async def test_a_servers_time_does_not_run_while_it_is_being_connected() -> None:
    house = House(server(), lute={"tool_timeout": 0.1})
    house.servers["lute"].refusal = "not now"
    waiting = house.start(house.call("lute", "play"))
    await settle()
    house.servers["lute"].refusal = ""
    await house.clock.advance(1.0)
    assert (await waiting).content == "a note"


async def test_a_call_that_comes_after_its_deadline_is_not_sent() -> None:
    house = House(server())
    await house.settled(house.call("lute", "play"))
    await house.clock.advance(10.0)
    with pytest.raises(CallTimeoutError) as caught:
        await house.settled(house.call("lute", "play", context=CallContext(deadline=5.0)))
    assert not caught.value.sent
    assert len(house.servers["lute"].calls) == 1


# The queue


async def test_no_more_calls_are_at_the_server_than_its_limit_and_they_come_in_order() -> None:
    house = House(server(slow=Delay(1.0, "done")), lute={"max_concurrent_calls": 2})
    calls = [house.start(house.call("lute", "slow", id=str(number), number=number)) for number in range(6)]
    for done in (2, 4, 6):
        await house.clock.advance(0.5)
        assert [arguments["number"] for _, arguments in house.servers["lute"].calls] == list(range(done))
        await house.clock.advance(0.5)
    assert [(await task).content for task in calls] == ["done"] * 6


async def test_waiting_in_the_queue_counts_and_what_times_out_there_was_not_sent() -> None:
    house = House(server(slow=Hang()), lute={"max_concurrent_calls": 1, "tool_timeout": 5.0})
    first = house.start(house.call("lute", "slow", timeout=60.0))
    await settle()
    second = house.start(house.call("lute", "play"))
    await house.clock.advance(5.1)
    error = second.exception()
    assert isinstance(error, CallTimeoutError)
    assert not error.sent
    assert not first.done()
    assert len(house.servers["lute"].calls) == 1


@pytest.mark.parametrize("end", ["answer", "timeout", "cancel", "drop"])
async def test_a_place_in_the_server_is_given_back_however_a_call_ends(end: str) -> None:
    behaviour = {"answer": Delay(1.0, "x"), "timeout": Hang(), "cancel": Hang(), "drop": Delay(1.0, Drop())}[
        end
    ]
    house = House(server(slow=behaviour), lute={"max_concurrent_calls": 1})
    first = house.start(house.call("lute", "slow", timeout=2.0))
    await settle()
    second = house.start(house.call("lute", "play"))
    if end == "cancel":
        first.cancel()
    await house.clock.advance(3.0)
    assert first.done()
    assert (await second).content == "a note"


# Crashes


async def test_a_crash_fails_the_calls_in_flight_at_once_and_the_next_call_starts_the_server_again() -> None:
    house = House(server(slow=Hang()))
    calls = [house.start(house.call("lute", "slow", id=str(number))) for number in range(3)]
    await settle()
    house.servers["lute"].drop()
    await settle()
    for task in calls:
        error = task.exception()
        assert isinstance(error, ConnectionLostError)
        assert error.sent
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    assert house.servers["lute"].connections == 2
    assert len(house.servers["lute"].calls) == 4
    assert house.notebook.of(ServerStopped)[0].reason == "Server 'lute' ended the connection."


async def test_a_call_whose_answer_was_lost_is_never_sent_again() -> None:
    house = House(server(crash=Drop()))
    with pytest.raises(ConnectionLostError) as caught:
        await house.settled(house.call("lute", "crash"))
    assert caught.value.sent
    assert len(house.servers["lute"].calls) == 1


async def test_a_call_that_the_lost_connection_had_not_taken_is_sent_on_another_one() -> None:
    house = House(server())
    lute = house.servers["lute"]
    await house.settled(house.call("lute", "play"))
    lute.open[0].congest(on=True)
    waiting = house.start(house.call("lute", "play"))
    await settle()
    assert len(lute.calls) == 1
    lute.drop()
    await settle(100)
    assert (await waiting).content == "a note"
    assert len(lute.calls) == 2
    assert lute.connections == 2


async def test_a_list_whose_reading_was_cut_off_is_read_on_another_connection() -> None:
    class Shaky(MemoryServer):
        def definition(self, name: str) -> dict[str, Any]:
            if self.connections == 1:
                self.drop()
            return super().definition(name)

    house = House(Shaky("lute", {"play": "a note"}))
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    assert house.servers["lute"].connections == 2


async def test_a_server_that_was_started_again_is_asked_for_its_list_again() -> None:
    house = House(server())
    lute = house.servers["lute"]
    await house.settled(house.call("lute", "play"))
    lute.drop()
    lute.tools["new"] = "news"
    assert (await house.settled(house.call("lute", "new"))).content == "news"
    assert len(_methods(lute, "tools/list")) == 2


async def test_the_old_list_is_kept_and_told_of_when_the_new_one_cannot_be_read() -> None:
    class Muddled(MemoryServer):
        muddled = False

        def take(self, connection: Any, message: dict[str, Any]) -> None:
            if self.muddled and message.get("method") == "tools/list":
                connection.perform(message["id"], Fail("no list today"), {})
            else:
                super().take(connection, message)

    lute = Muddled("lute", {"play": "a note"})
    house = House(lute, lute={"cache_ttl": 10.0})
    await house.settled(house.call("lute", "play"))
    lute.muddled = True
    await house.clock.advance(11.0)
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    (noise,) = house.notebook.of(ServerNoise)
    assert noise.message.startswith("the list of tools could not be read again, the old one is kept: ")
    assert "no list today" in noise.message
    assert noise.label == UNTRUSTED.join(Label(sources=frozenset({Source(noise.server, "")})))


async def test_a_call_that_waits_for_a_first_connection_says_so_when_its_time_is_up() -> None:
    house = House(MemoryServer("lute", {"play": "a note"}, era="2025-06-18"))
    house.servers["lute"].probe = "ignore"
    play = Tool(uri=ToolUri.mcp("lute", "play"), input_schema={})
    waiting = house.start(house.manager.carry(wanted("lute", "play", timeout=0.5), play))
    await house.clock.advance(0.6)
    error = waiting.exception()
    assert isinstance(error, CallTimeoutError)
    assert "while its server was being connected" in error.message
    assert error.hint == ""
    await house.clock.advance(5.0)
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    assert house.servers["lute"].connections == 1


async def test_an_idle_server_that_went_away_is_started_again_for_the_next_call() -> None:
    house = House(server())
    await house.settled(house.call("lute", "play"))
    house.servers["lute"].drop()
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    assert house.servers["lute"].connections == 2


async def test_a_tools_own_error_leaves_the_connection_as_it_is() -> None:
    house = House(server(broken=ValueError("no string")))
    for _ in range(20):
        reply = await house.settled(house.call("lute", "broken"))
        assert reply.is_error
    assert house.servers["lute"].connections == 1
    assert house.manager.state("lute") == "ready"


async def test_a_cancelled_caller_cancels_its_call_at_the_server_and_no_other() -> None:
    house = House(server(slow=Delay(5.0, "done")))
    one, other = (house.start(house.call("lute", "slow", id=id)) for id in "ab")
    await settle()
    one.cancel()
    await settle()
    assert one.cancelled()
    assert len(house.servers["lute"].cancelled) == 1
    await house.clock.advance(5.0)
    assert (await other).content == "done"


async def test_a_slow_server_and_a_dead_one_cost_their_neighbours_nothing() -> None:
    slow, dead, good = server("slow", wait=Hang()), server("dead"), server("good")
    house = House(slow, dead, good)
    dead.refusal = "dead"
    stuck = [house.start(house.call("slow", "wait", id=str(number))) for number in range(50)]
    failing = [house.start(house.call("dead", "play", id=str(number))) for number in range(50)]
    await settle()
    assert (await house.settled(house.call("good", "play"))).content == "a note"
    assert not any(task.done() for task in (*stuck, *failing))
    for task in (*stuck, *failing):
        task.cancel()
    await settle()


# Replies and promises


async def test_a_reply_that_breaks_its_promise_is_kept_and_noted() -> None:
    promising = MemoryServer(
        "lute", {"play": "just text"}, definitions={"play": {"outputSchema": {"type": "object"}}}
    )
    house = House(promising)
    for _ in range(2):
        reply = await house.settled(house.call("lute", "play"))
        assert reply.content == "just text"
        assert len(reply.notes) == 1


# Starting over, and the end


async def test_reconnecting_drops_the_connection_and_the_list_and_fails_what_is_in_flight() -> None:
    house = House(server(slow=Hang()))
    stuck = house.start(house.call("lute", "slow"))
    await settle()
    house.servers["lute"].tools["new"] = "news"
    await house.settled(house.manager.reconnect("lute"))
    assert isinstance(stuck.exception(), ConnectionLostError)
    assert house.manager.state("lute") == "idle"
    assert (await house.settled(house.call("lute", "new"))).content == "news"
    assert house.servers["lute"].connections == 2


async def test_reconnecting_what_is_not_connected_does_nothing() -> None:
    house = House(server())
    await house.settled(house.manager.reconnect("lute"))
    await house.settled(house.manager.reconnect("nobody"))
    assert house.notebook.events == []


async def test_reconnecting_while_a_connection_is_being_made_fails_its_waiters_and_the_next_call_works() -> (
    None
):
    house = House(server())
    house.servers["lute"].refusal = "not now"
    waiting = house.start(house.call("lute", "play"))
    await settle()
    reconnecting = house.start(house.manager.reconnect("lute"))
    house.servers["lute"].refusal = ""
    await settle()
    assert isinstance(waiting.exception(), ConnectError)
    assert reconnecting.done()
    assert (await house.settled(house.call("lute", "play"))).content == "a note"


async def test_closing_ends_every_connection_and_nothing_is_connected_after_it() -> None:
    house = House(server("one"), server("two", slow=Hang()), server("three"))
    await house.settled(house.call("one", "play"))
    stuck = house.start(house.call("two", "slow"))
    await settle()
    await house.settled(house.manager.close_all())
    assert isinstance(stuck.exception(), ConnectionLostError)
    assert all(not server.open for server in house.servers.values())
    for name in house.servers:
        assert house.manager.state(name) == "closed"
        with pytest.raises(ConnectError) as caught:
            await house.settled(house.call(name, "play"))
        assert not caught.value.retryable
    await house.settled(house.manager.close_all())


async def test_closing_ends_connections_that_are_being_made_or_waited_for() -> None:
    house = House(server("one"), server("two", slow=Hang()))
    house.servers["one"].refusal = "not now"
    house.servers["two"].version = "2025-06-18"
    house.servers["two"].probe = "ignore"
    waiting = [house.start(house.manager.connect(name)) for name in house.servers]
    await settle()
    assert [house.manager.state(name) for name in house.servers] == ["backoff", "connecting"]
    await house.settled(house.manager.close_all())
    for task in waiting:
        assert isinstance(task.exception(), ConnectError)
    assert house.servers["two"].open == []


async def test_another_registry_closes_what_changed_and_keeps_what_did_not() -> None:
    house = House(server("one"), server("two"), server("three"))
    for name in house.servers:
        await house.settled(house.manager.connect(name))
    changed = ServerEntry(id="two", command="python", tool_timeout=1.0)
    await house.settled(house.manager.use(house.registry.with_entry(changed).without("three")))
    assert [house.manager.state(name) for name in ("one", "two")] == ["ready", "idle"]
    assert not house.servers["three"].open
    with pytest.raises(NotFoundError):
        await house.manager.manifest("three")
    assert (await house.settled(house.call("two", "play"))).content == "a note"
    assert house.servers["one"].connections == 1


# Lists


async def test_a_list_is_kept_as_long_as_its_entry_says() -> None:
    house = House(server(), lute={"cache_ttl": 10.0})
    for seconds, lists in ((0, 1), (9.9, 1), (0.2, 2)):
        await house.clock.advance(seconds)
        await house.settled(house.manager.manifest("lute"))
        assert len(_methods(house.servers["lute"], "tools/list")) == lists


async def test_no_cache_reads_the_list_every_time_and_once_for_those_who_ask_at_once() -> None:
    house = House(server(), lute={"cache_ttl": 0.0})
    for lists in (1, 2):
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(house.manager.manifest("lute"))
        assert len(_methods(house.servers["lute"], "tools/list")) == lists


async def test_a_fresh_list_is_read_though_the_old_one_holds() -> None:
    house = House(server())
    await house.settled(house.manager.manifest("lute"))
    house.servers["lute"].tools["new"] = "news"
    assert (await house.settled(house.manager.manifest("lute"))).find("new") is None
    assert (await house.settled(house.manager.manifest("lute", fresh=True))).find("new") is not None


async def test_a_change_that_is_announced_is_read_at_once_and_many_at_once_are_read_as_one() -> None:
    house = House(MemoryServer("lute", {"play": "a note"}, era="2025-11-25"))
    lute = house.servers["lute"]
    await house.settled(house.call("lute", "play"))
    lute.tools["new"] = "news"
    await house.clock.advance(1.0)
    for _ in range(20):
        lute.notify("notifications/tools/list_changed")
    await settle(100)
    assert 2 <= len(_methods(lute, "tools/list")) <= 3
    assert (await house.settled(house.call("lute", "new"))).content == "news"
    assert len(_methods(lute, "tools/list")) <= 3


async def test_a_server_that_announces_a_change_with_every_list_is_not_followed_for_ever() -> None:
    class Restless(MemoryServer):
        def definition(self, name: str) -> dict[str, Any]:
            asyncio.get_running_loop().call_later(0.0, self.notify, "notifications/tools/list_changed")
            return super().definition(name)

    lute = Restless("lute", {"play": "a note"}, era="2025-11-25")
    house = House(lute)
    await house.settled(house.call("lute", "play"))
    assert 1 <= len(_methods(lute, "tools/list")) <= 3
    await settle(300)
    listed = len(_methods(lute, "tools/list"))
    await settle(300)
    assert len(_methods(lute, "tools/list")) == listed


async def test_who_waits_for_a_list_when_everything_is_closed_is_told_and_not_cancelled() -> None:
    house = House(server())
    house.servers["lute"].probe = "ignore"
    house.servers["lute"].version = "2025-06-18"
    waiting = house.start(house.manager.manifest("lute"))
    await settle()
    await house.settled(house.manager.close_all())
    assert isinstance(waiting.exception(), ConnectError)


# Another server at the same place


async def test_a_server_that_speaks_another_revision_now_is_connected_afresh_for_the_next_call() -> None:
    house = House(server())
    lute = house.servers["lute"]
    await house.settled(house.call("lute", "play"))
    lute.version = "2026-12-24"
    with pytest.raises(ProtocolError, match="Unsupported protocol version"):
        await house.settled(house.call("lute", "play"))
    assert house.manager.state("lute") == "idle"
    lute.version = "2026-07-28"
    assert (await house.settled(house.call("lute", "play"))).content == "a note"
    assert lute.connections == 2


async def test_calls_that_are_still_under_way_are_not_broken_off_by_one_that_found_another_server() -> None:
    house = House(server(slow=Delay(5.0, "done")))
    lute = house.servers["lute"]
    slow = house.start(house.call("lute", "slow"))
    await settle(100)
    lute.version = "2026-12-24"
    with pytest.raises(ProtocolError):
        await house.settled(house.call("lute", "play"))
    await house.clock.advance(5.0)
    assert (await slow).content == "done"


async def test_a_list_that_finds_another_server_starts_over_too() -> None:
    house = House(server(), lute={"cache_ttl": 0.0})
    lute = house.servers["lute"]
    await house.settled(house.manager.manifest("lute"))
    lute.version = "2026-12-24"
    listing = house.start(house.manager.manifest("lute", fresh=True))
    await settle(200)
    assert isinstance(listing.exception(), ProtocolError)
    lute.version = "2026-07-28"
    assert (await house.settled(house.manager.manifest("lute"))).find("play") is not None
    assert lute.connections == 2


# Servers that ask


async def test_what_a_server_asks_is_answered_by_the_handlers_that_the_manager_was_given() -> None:
    async def person(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": params["message"]}}

    def greet(_: dict[str, Any]) -> Any:
        if "inputResponses" in lute.received[-1]["params"]:
            return lute.received[-1]["params"]["inputResponses"]["who"]["content"]["name"]
        request = {"method": "elicitation/create", "params": {"message": "Ada"}}
        return Result({"resultType": "input_required", "inputRequests": {"who": request}})

    lute = MemoryServer("lute", {"greet": greet})
    manager = ConnectionManager(
        ServerRegistry([ServerEntry(id="lute", command="python")]),
        clock=FakeClock(),
        environ={},
        transports={"lute": lute.transport},
        handlers=Handlers(elicitation=person),
    )
    assert (await call(manager, wanted("lute", "greet"))).content == "Ada"
    await manager.close_all()


# Trying out


async def test_a_try_tells_what_a_server_is_and_offers() -> None:
    house = House(server(odd="?"))
    lute = house.servers["lute"]
    lute.definitions["odd"] = {"inputSchema": 7}
    report = await house.settled(house.manager.try_out("lute"))
    assert (report.server, report.ok, report.error) == ("lute", True, None)
    assert (report.transport, report.protocol) == ("memory", "2026-07-28")
    assert report.to_json() == {
        "id": "lute",
        "ok": True,
        "transport": "memory",
        "protocol": "2026-07-28",
        "name": report.name,
        "tools": list(report.tools),
        "dropped": [{"name": tool.name, "reason": tool.reason} for tool in report.dropped],
        "isolation": [],
        "seconds": 0.0,
    }
    assert "play" in report.tools
    assert lute.open == []


async def test_a_try_is_made_once_tells_what_went_wrong_and_heals_nothing() -> None:
    house = House(server(), lute={"max_retries": 5})
    house.servers["lute"].refusal = "not now"
    report = await house.settled(house.manager.try_out("lute"))
    assert str(report.error) == "not now"
    assert report.to_json()["error"]["phase"] == "spawn"
    await house.clock.advance(3600.0)
    assert len(house.notebook.of(ServerStarting)) == 1
    assert house.manager.state("lute") == "idle"


async def test_a_try_whose_list_does_not_come_tells_so_and_is_put_away() -> None:
    class Mute(MemoryServer):
        def take(self, connection: Any, message: dict[str, Any]) -> None:
            if message.get("method") != "tools/list":
                super().take(connection, message)

    house = House(Mute("lute"), lute={"timeout": 3.0})
    trying = house.start(house.manager.try_out("lute"))
    await house.clock.advance(3.1)
    report = await trying
    assert isinstance(report.error, CallTimeoutError)
    assert report.protocol == "2026-07-28"
    assert house.servers["lute"].open == []


async def test_a_try_of_an_unknown_server_is_not_found() -> None:
    house = House(server())
    with pytest.raises(NotFoundError):
        await house.manager.try_out("flute")
