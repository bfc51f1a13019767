"""Finding out which era a server speaks, on a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from luthier.clock import FakeClock, settle
from luthier.errors import (
    ConnectError,
    HttpAnswer,
    HttpError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
)
from luthier.wire import (
    HANDSHAKE_VERSIONS,
    KNOWN_VERSIONS,
    Bytes,
    Handlers,
    MemoryServer,
    MemoryTransport,
    Outgoing,
    Receiver,
    Session,
    open_session,
)
from luthier.wire.negotiate import SILENCE
from tests.wire.support import bounded

Reaction = Callable[["Script", MemoryTransport, dict[str, Any]], None]


class Script(MemoryServer):
    """A server whose answers to `server/discover` and `initialize` are the test's."""

    def __init__(self, clock: FakeClock, **reactions: Reaction) -> None:
        super().__init__("m", {"t": "played"}, era="2025-11-25", clock=clock)
        self.reactions = {
            "server/discover": reactions.get("discover"),
            "initialize": reactions.get("initialize"),
        }

    def take(self, connection: MemoryTransport, message: dict[str, Any]) -> None:
        reaction = self.reactions.get(message.get("method", ""))
        if reaction is None:
            super().take(connection, message)
        else:
            self.received.append(message)
            reaction(self, connection, message)

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.received]


def says(body: dict[str, Any], after: float = 0.0) -> Reaction:
    def react(server: Script, connection: MemoryTransport, message: dict[str, Any]) -> None:
        data = msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], **body}) + b"\n"
        server.clock.call_later(after, lambda: connection.deliver(data))

    return react


def result(value: Any, after: float = 0.0) -> Reaction:
    return says({"result": value}, after)


def error(code: int, after: float = 0.0, **data: Any) -> Reaction:
    return says({"error": {"code": code, "message": "no", **({"data": data} if data else {})}}, after)


def in_turn(reactions: list[Reaction]) -> Reaction:
    def react(server: Script, connection: MemoryTransport, message: dict[str, Any]) -> None:
        reactions.pop(0)(server, connection, message)

    return react


def silent(*_: Any) -> None:
    """No answer at all."""


def dies(_: Script, connection: MemoryTransport, __: dict[str, Any]) -> None:
    connection.lose()


DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}


async def opened(
    clock: FakeClock,
    server: MemoryServer,
    *,
    within: float = 30.0,
    wait: float = 0.0,
    told: list[str] | None = None,
    **how: Any,
) -> Session:
    """The session, after `wait` seconds have gone by on the clock."""
    handlers = Handlers(on_noise=(told if told is not None else []).append)
    opening = asyncio.create_task(
        open_session(server.transport, server="m", clock=clock, timeout=within, handlers=handlers, **how)
    )
    await clock.advance(wait)
    return await bounded(opening)


async def refused(clock: FakeClock, server: MemoryServer, **how: Any) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        await opened(clock, server, **how)
    await settle()
    assert server.open == []  # nothing is left behind
    assert clock.waiting == 0
    return caught.value


@pytest.mark.parametrize("era", KNOWN_VERSIONS)
async def test_every_revision_is_found_out_without_waiting(era: str) -> None:
    clock = FakeClock()
    session = await opened(clock, MemoryServer("m", era=era, clock=clock))
    assert session.version == era
    assert clock.monotonic() == 0.0
    assert clock.waiting == 0


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32700, 0, -1, -32004])
async def test_any_other_error_to_the_question_means_the_handshake_era(code: int) -> None:
    clock = FakeClock()
    server = Script(clock, discover=error(code))
    session = await opened(clock, server)
    assert (session.version, server.methods) == (
        "2025-11-25",
        ["server/discover", "initialize", "notifications/initialized"],
    )


@pytest.mark.parametrize(
    "answer", [{}, {"ok": True}, [], "yes", None, {"supportedVersions": "2026-07-28"}], ids=repr
)
async def test_a_result_that_names_no_revisions_means_the_handshake_era(answer: Any) -> None:
    clock = FakeClock()
    assert (await opened(clock, Script(clock, discover=result(answer)))).version == "2025-11-25"


async def test_a_server_that_advertises_only_handshake_revisions_is_asked_for_the_best_of_them() -> None:
    clock = FakeClock()
    server = Script(clock, discover=result({"supportedVersions": ["2024-11-05", "2025-03-26", 5]}))
    await opened(clock, server)
    assert server.received[1]["params"]["protocolVersion"] == "2025-03-26"


async def test_an_unsupported_version_error_picks_from_what_it_names() -> None:
    clock = FakeClock()
    answers = [error(-32022, supported=["2027-01-01", "2026-07-28"]), result(DISCOVERED)]
    server = Script(clock, discover=in_turn(answers))
    session = await opened(clock, server)
    assert (session.version, server.methods) == ("2026-07-28", ["server/discover", "server/discover"])


async def test_an_unsupported_version_error_may_name_handshake_revisions() -> None:
    clock = FakeClock()
    server = Script(clock, discover=error(-32022, supported=["2025-06-18"]))
    assert (await opened(clock, server)).version == "2025-11-25"
    assert server.received[1]["params"]["protocolVersion"] == "2025-06-18"


async def test_a_server_that_speaks_only_revisions_of_the_future_is_refused_for_good() -> None:
    clock = FakeClock()
    server = Script(clock, discover=error(-32022, supported=["2027-01-01", "2028-01-01"]))
    fault = await refused(clock, server)
    assert "2027-01-01, 2028-01-01" in str(fault)
    assert not fault.retryable
    assert server.methods == ["server/discover"]


@pytest.mark.parametrize("data", [{}, {"supported": "all"}, {"supported": []}], ids=repr)
async def test_an_unsupported_version_error_that_names_nothing_means_the_handshake_era(
    data: dict[str, Any],
) -> None:
    clock = FakeClock()
    assert (await opened(clock, Script(clock, discover=error(-32022, **data)))).version == "2025-11-25"


async def test_after_a_silence_initialize_is_sent_behind_the_question() -> None:
    clock = FakeClock()
    server = Script(clock, discover=silent)
    opening = asyncio.create_task(opened(clock, server))
    await clock.advance(SILENCE - 0.01)
    assert server.methods == ["server/discover"]
    await clock.advance(0.01)
    assert (await bounded(opening)).version == "2025-11-25"
    assert clock.monotonic() == SILENCE


async def test_a_slow_modern_server_is_not_taken_for_an_old_one() -> None:
    clock = FakeClock()
    server = Script(clock, discover=result(DISCOVERED, after=9.0), initialize=error(-32022, after=9.1))
    session = await opened(clock, server, wait=9.5)
    assert session.version == "2026-07-28"
    assert "initialize" in server.methods
    assert "notifications/initialized" not in server.methods


async def test_a_slow_old_server_is_waited_for() -> None:
    clock = FakeClock()
    server = Script(clock, discover=error(-32601, after=20.0), initialize=result(INITIALIZED, after=21.0))
    session = await opened(clock, server, wait=25.0)
    assert session.version == "2025-11-25"
    assert server.methods == ["server/discover", "initialize", "notifications/initialized"]


async def test_initialize_refused_first_still_leaves_time_for_the_question() -> None:
    clock = FakeClock()
    server = Script(clock, discover=result(DISCOVERED, after=4.0), initialize=error(-32600, after=1.0))
    assert (await opened(clock, server, wait=5.0)).version == "2026-07-28"


async def test_initialize_refused_and_the_question_unanswered_is_a_failure() -> None:
    clock = FakeClock()
    server = Script(clock, discover=silent, initialize=error(-32600))
    fault = await refused(clock, server, wait=2 * SILENCE)
    assert "error -32600" in str(fault)
    assert clock.monotonic() == 2 * SILENCE


async def test_initialize_refused_by_a_modern_server_that_lost_the_question_asks_again() -> None:
    clock = FakeClock()
    answers: list[Reaction] = [silent, result(DISCOVERED)]
    server = Script(
        clock,
        discover=in_turn(answers),
        initialize=error(-32022, supported=["2026-07-28"]),
    )
    assert (await opened(clock, server, wait=2 * SILENCE)).version == "2026-07-28"


async def test_a_discover_result_wins_even_in_a_standing_session() -> None:
    clock = FakeClock()
    server = Script(clock, discover=result({**DISCOVERED, "instructions": "late"}, after=8.0))
    told: list[str] = []
    session = await opened(clock, server, wait=SILENCE, told=told)
    assert session.version == "2025-11-25"
    await clock.advance(8.0)
    assert (session.version, session.modern, session.instructions) == ("2026-07-28", True, "late")
    assert "came late" in told[-1]
    call = asyncio.create_task(session.call_tool("t", {}, timeout=1.0))
    await settle()
    assert (await bounded(call)).content == "played"
    assert "_meta" in server.received[-1]["params"]


async def test_a_question_that_is_never_answered_does_not_hide_whose_an_error_without_an_id_is() -> None:
    clock = FakeClock()
    server = Script(clock, discover=silent)
    server.tools["t"] = Bytes(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost"}}\n')
    session = await opened(clock, server, wait=SILENCE)
    with pytest.raises(ProtocolError, match="lost"):
        await bounded(session.call_tool("t", {}, timeout=1.0))


async def test_an_error_without_an_id_answers_the_question() -> None:
    clock = FakeClock()
    nameless = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}\n'
    server = Script(clock, discover=lambda _, connection, __: connection.deliver(nameless))
    assert (await opened(clock, server)).version == "2025-11-25"
    assert clock.monotonic() == 0.0


@pytest.mark.parametrize(
    "late", [error(-32601, after=8.0), result({}, after=8.0)], ids=["error", "empty result"]
)
async def test_any_other_late_answer_changes_nothing(late: Reaction) -> None:
    clock = FakeClock()
    session = await opened(clock, Script(clock, discover=late), wait=SILENCE)
    await clock.advance(8.0)
    assert session.version == "2025-11-25"
    await bounded(session.close())


async def test_closing_leaves_no_question_open() -> None:
    clock = FakeClock()
    session = await opened(clock, Script(clock, discover=silent), wait=SILENCE)
    await bounded(session.close())
    await settle()
    assert session.version == "2025-11-25"
    assert clock.waiting == 0


@pytest.mark.parametrize("initialize", [None, result(INITIALIZED, after=3.0)], ids=["at once", "slowly"])
async def test_a_server_that_exits_when_asked_is_started_again_and_spoken_to_in_the_old_way(
    initialize: Reaction | None,
) -> None:
    clock = FakeClock()
    told: list[str] = []
    reactions = {"discover": dies} | ({"initialize": initialize} if initialize else {})
    server = Script(clock, **reactions)
    session = await opened(clock, server, wait=3.0, told=told)
    assert (session.version, server.connections) == ("2025-11-25", 2)
    assert server.methods == ["server/discover", "initialize", "notifications/initialized"]
    assert "started again" in told[0]


async def test_a_server_that_exits_after_a_silence_is_started_again_too() -> None:
    clock = FakeClock()

    def dies_later(server: Script, connection: MemoryTransport, message: dict[str, Any]) -> None:
        clock.call_later(5.0, connection.lose)

    server = Script(clock, discover=dies_later, initialize=lambda server, connection, message: (
        result(INITIALIZED)(server, connection, message) if server.connections == 2 else None
    ))  # fmt: skip
    session = await opened(clock, server, wait=5.0)
    assert (session.version, server.connections) == ("2025-11-25", 2)


async def test_a_server_that_always_exits_gives_one_error() -> None:
    clock = FakeClock()
    server = Script(clock, discover=dies, initialize=dies)
    fault = await refused(clock, server)
    assert str(fault) == "Server 'm' ended the connection. It had answered nothing."
    assert server.connections == 2
    assert fault.retryable


async def test_a_server_that_cannot_be_reached_gives_its_own_error() -> None:
    clock = FakeClock()
    server = MemoryServer("m", clock=clock)
    server.refusal = "nobody home"
    fault = await refused(clock, server)
    assert (str(fault), fault.phase) == ("nobody home", "spawn")


async def test_a_server_that_never_answers_fails_within_the_timeout() -> None:
    clock = FakeClock()
    server = Script(clock, discover=silent, initialize=silent)
    fault = await refused(clock, server, within=7.0, wait=7.0)
    assert "did not answer within 7 s" in str(fault)
    assert "timeout_ms" in fault.hint
    assert clock.monotonic() == 7.0


def prints(text: bytes) -> Reaction:
    return lambda _, connection, __: connection.deliver(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"Welcome \x1b[31mto caf\xe9\n\nListening on port 3000\n",
            "It printed 2 lines that are no JSON-RPC; the first: Welcome \\x1b[31mto caf\ufffd",
        ),
        (b"> ready\n", "It printed a line that is no JSON-RPC: > ready"),
        (
            b'{"level": "info"}\n[1, 2]\n',
            'It printed 2 lines that are no JSON-RPC; the first: {"level": "info"}',
        ),
        (b"[\n", "It printed a line that is no JSON-RPC: ["),  # and may go on, for all that is known
        (b"x" * 5000 + b"\n", "It printed a line that is no JSON-RPC: " + "x" * 199 + "\u2026"),
    ],
    ids=["words", "one line", "JSON that is no message", "unfinished", "long"],
)
async def test_a_server_that_prints_but_never_answers_is_said_to_print(text: bytes, said: str) -> None:
    clock = FakeClock()
    fault = await refused(
        clock, Script(clock, discover=prints(text), initialize=silent), within=3.0, wait=3.0
    )
    assert str(fault).startswith(f"Server 'm' did not answer within 3 s of being started. {said}")
    assert "nothing but JSON-RPC" in fault.hint
    assert "downloading" not in fault.hint


async def test_a_server_that_prints_its_usage_and_exits_is_said_to_print() -> None:
    clock = FakeClock()

    def prints_and_dies(_: Script, connection: MemoryTransport, __: dict[str, Any]) -> None:
        connection.deliver(b"usage: tool FILE\n")
        asyncio.get_running_loop().call_soon(connection.lose)

    fault = await refused(clock, Script(clock, discover=prints_and_dies, initialize=prints_and_dies))
    assert "It had answered nothing. It printed 2 lines that are no JSON-RPC; the first: usage: tool" in str(
        fault
    )
    assert "nothing but JSON-RPC" in fault.hint


@pytest.mark.parametrize(
    ("reactions", "wait"),
    [({"discover": silent, "initialize": silent}, 3.0), ({"initialize": error(-32600)}, 0.0)],
    ids=["silence", "a refusal"],
)
async def test_an_error_is_handed_out_before_its_server_has_ended_if_somebody_takes_the_ending(
    reactions: dict[str, Reaction], wait: float
) -> None:
    clock = FakeClock()
    server = Script(clock, **reactions)
    left: list[Coroutine[Any, Any, None]] = []
    with pytest.raises(ConnectError):
        await opened(clock, server, within=3.0, wait=wait, leave=left.append)
    assert len(server.open) == 1
    assert clock.waiting == 0
    (remains,) = left
    await bounded(remains)
    assert server.open == []


async def test_the_opening_may_be_cancelled_and_leaves_nothing() -> None:
    clock = FakeClock()
    server = Script(clock, discover=silent, initialize=silent)
    opening = asyncio.create_task(opened(clock, server))
    await clock.advance(3.0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bounded(opening)
    assert server.open == []
    assert clock.waiting == 0


@pytest.mark.parametrize(
    "version", ["2024-10-07", "DRAFT-2026", "2026-07-28", "1.0", "", None, 5, ["x"]], ids=repr
)
async def test_an_unknown_revision_in_the_handshake_is_told_and_the_one_asked_for_assumed(
    version: Any,
) -> None:
    clock = FakeClock()
    told: list[str] = []
    answer = {**INITIALIZED, "protocolVersion": version}
    session = await opened(clock, Script(clock, initialize=result(answer)), told=told)
    assert session.version == "2025-11-25"
    assert "unknown revision" in told[-1]


async def test_odd_details_of_the_handshake_are_read_as_nothing() -> None:
    clock = FakeClock()
    answer = {"protocolVersion": "2025-11-25", "capabilities": None, "serverInfo": "x", "instructions": 5}
    session = await opened(clock, Script(clock, initialize=result(answer)))
    assert (session.capabilities, session.server_info, session.instructions) == ({}, {}, "")


async def test_odd_details_of_a_discover_result_are_read_as_nothing() -> None:
    clock = FakeClock()
    answer = {"supportedVersions": ["2026-07-28"], "_meta": 5, "capabilities": []}
    session = await opened(clock, Script(clock, discover=result(answer)))
    assert (session.capabilities, session.server_info) == ({}, {})


async def test_a_modern_server_names_itself_in_meta() -> None:
    clock = FakeClock()
    info = {"io.modelcontextprotocol/serverInfo": {"name": "x", "version": "2"}}
    session = await opened(clock, Script(clock, discover=result({**DISCOVERED, "_meta": info})))
    assert session.server_info == {"name": "x", "version": "2"}


async def test_a_handshake_that_is_no_object_is_a_failure() -> None:
    clock = FakeClock()
    assert "not an object" in str(await refused(clock, Script(clock, initialize=result([1]))))


@pytest.mark.parametrize("pin", HANDSHAKE_VERSIONS)
async def test_a_pinned_handshake_revision_is_asked_for_without_a_question(pin: str) -> None:
    clock = FakeClock()
    server = MemoryServer("m", era=pin, clock=clock)
    session = await opened(clock, server, pinned=pin)
    assert session.version == pin
    assert [message["method"] for message in server.received] == ["initialize", "notifications/initialized"]
    assert server.received[0]["params"]["protocolVersion"] == pin


async def test_a_pinned_handshake_revision_accepts_the_servers_counter() -> None:
    clock = FakeClock()
    session = await opened(clock, MemoryServer("m", era="2024-11-05", clock=clock), pinned="2025-11-25")
    assert session.version == "2024-11-05"


async def test_a_pinned_handshake_revision_that_is_refused_names_those_that_there_are() -> None:
    clock = FakeClock()
    fault = await refused(
        clock, Script(clock, initialize=error(-32022, supported=["2026-07-28"])), pinned="2025-11-25"
    )
    assert "it speaks only 2026-07-28" in str(fault)
    assert "protocol" in fault.hint
    assert not fault.retryable


async def test_a_server_that_exits_at_a_pinned_handshake_is_not_started_again() -> None:
    clock = FakeClock()
    server = Script(clock, initialize=dies)
    assert "answered nothing" in str(await refused(clock, server, pinned="2025-11-25"))
    assert server.connections == 1


async def test_a_pinned_modern_revision_is_all_that_is_tried() -> None:
    clock = FakeClock()
    server = MemoryServer("m", clock=clock)
    assert (await opened(clock, server, pinned="2026-07-28")).version == "2026-07-28"
    old = Script(clock, discover=error(-32601))
    fault = await refused(clock, old, pinned="2026-07-28")
    assert "does not speak 2026-07-28" in str(fault)
    assert not fault.retryable
    assert "pin" in fault.hint
    assert old.methods == ["server/discover"]


class Failing(MemoryTransport):
    """A way that fails every request with that error."""

    def __init__(self, server: MemoryServer, error: WireError) -> None:
        super().__init__(server)
        self.error = error
        self.receiver: Receiver

    async def start(self, receiver: Receiver) -> None:
        self.receiver = receiver
        await super().start(receiver)

    def send(self, message: Outgoing) -> None:
        if message.id is not None:
            self.receiver.failed(message.id, self.error)


@pytest.mark.parametrize("pinned", [None, "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "fault",
    [
        ProtocolError("it is a login page", server="m", hint="Check `url`."),
        MessageTooLargeError("it is too large", server="m", hint="Raise it."),
        HttpError("HTTP 404", HttpAnswer(404), server="m", hint="Check the path."),
        HttpError("HTTP 500", HttpAnswer(500), server="m", hint="See its log."),
    ],
    ids=["a page", "too large", "404", "500"],
)
async def test_what_fails_on_the_way_keeps_its_hint_and_says_nothing_of_revisions(
    fault: WireError, pinned: str | None
) -> None:
    clock = FakeClock()
    server = MemoryServer("m", clock=clock)
    with pytest.raises(ConnectError) as caught:
        await bounded(
            open_session(lambda: Failing(server, fault), server="m", clock=clock, timeout=9.0, pinned=pinned)
        )
    assert str(caught.value).startswith(f"No session with server 'm': {fault.message}")
    assert caught.value.hint == fault.hint


async def test_a_bad_request_may_be_about_the_pinned_revision() -> None:
    clock = FakeClock()
    fault = HttpError("HTTP 400", HttpAnswer(400), server="m")
    with pytest.raises(ConnectError, match="does not speak 2026-07-28: HTTP 400"):
        await bounded(
            open_session(
                lambda: Failing(MemoryServer("m", clock=clock), fault),
                server="m",
                clock=clock,
                timeout=9.0,
                pinned="2026-07-28",
            )
        )


async def test_a_pinned_modern_revision_that_is_not_advertised_is_refused() -> None:
    clock = FakeClock()
    server = Script(clock, discover=result({"supportedVersions": ["2025-11-25"]}))
    assert "advertises other revisions" in str(await refused(clock, server, pinned="2026-07-28"))


async def test_a_server_that_refuses_a_pinned_revision_and_names_it_is_asked_once_more() -> None:
    clock = FakeClock()
    refuses = error(-32022, supported=["2026-07-28"])
    server = Script(clock, discover=in_turn([refuses, result(DISCOVERED)]))
    assert (await opened(clock, server, pinned="2026-07-28")).version == "2026-07-28"
    stubborn = Script(clock, discover=refuses)
    fault = await refused(clock, stubborn, pinned="2026-07-28")
    assert stubborn.methods == ["server/discover"] * 2
    assert ". Remove `protocol`" in str(fault)


async def test_a_pin_that_is_no_revision_is_refused_before_anything_starts() -> None:
    clock = FakeClock()
    server = MemoryServer("m", clock=clock)
    fault = await refused(clock, server, pinned="1999-01-01")
    assert not fault.retryable
    assert "2024-11-05" in fault.hint
    assert server.connections == 0


async def test_a_remembered_handshake_era_saves_the_question() -> None:
    clock = FakeClock()
    server = MemoryServer("m", era="2024-11-05", clock=clock)
    session = await opened(clock, server, remembered="2024-11-05")
    assert session.version == "2024-11-05"
    assert [message["method"] for message in server.received] == ["initialize", "notifications/initialized"]


async def test_a_remembered_handshake_era_that_is_no_longer_true_is_found_out_anew() -> None:
    clock = FakeClock()
    told: list[str] = []
    session = await opened(clock, MemoryServer("m", clock=clock), remembered="2025-11-25", told=told)
    assert session.version == "2026-07-28"
    assert "no longer speaks" in told[0]


async def test_a_remembered_modern_era_that_is_no_longer_true_is_found_out_anew() -> None:
    clock = FakeClock()
    session = await opened(clock, MemoryServer("m", era="2025-03-26", clock=clock), remembered="2026-07-28")
    assert session.version == "2025-03-26"


async def test_a_remembered_server_that_exits_is_not_started_again() -> None:
    clock = FakeClock()
    server = Script(clock, initialize=dies)
    await refused(clock, server, remembered="2025-11-25")
    assert server.connections == 1


async def test_an_unknown_remembered_revision_is_forgotten() -> None:
    clock = FakeClock()
    assert (
        await opened(clock, MemoryServer("m", clock=clock), remembered="1999-01-01")
    ).version == "2026-07-28"


@pytest.mark.parametrize(("probe", "wait", "connections"), [("ignore", SILENCE, 1), ("exit", 0.0, 2)])
async def test_the_server_in_memory_ignores_the_question_or_exits_as_told(
    probe: Any, wait: float, connections: int
) -> None:
    clock = FakeClock()
    server = MemoryServer("m", era="2025-06-18", clock=clock)
    server.probe = probe
    session = await opened(clock, server, wait=wait)
    assert (session.version, server.connections) == ("2025-06-18", connections)
