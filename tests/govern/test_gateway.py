"""The gate as a whole: what passes, what is refused and how, what is labelled, told and written down."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.clock import settle
from luthier.connect import ConnectionManager
from luthier.context import CallContext
from luthier.errors import (
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    NotFoundError,
    ProtocolError,
    Refused,
)
from luthier.events import CallEnded, CallStarted
from luthier.govern import Gateway, Intent, Outcome, Verdict
from luthier.spec import ToolFilter
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Source
from luthier.tools import Manifest, Refusal, Reply, Tool, ToolResult
from luthier.tools.builtin import Builtin, LocalTools
from luthier.trace import Trace
from luthier.uri import ToolUri
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Drop, Fail, Hang, Progress
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from luthier.govern.guard import Up

NUMBERS = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "paths": {"type": "array", "items": {"type": "string"}},
        "note": {"type": "string"},
    },
    "required": ["count"],
    "additionalProperties": False,
}


def lute(**tools: Any) -> MemoryServer:
    return MemoryServer(
        "lute",
        {"play": lambda arguments: {"played": arguments}, "count": lambda arguments: arguments, **tools},
        schemas={"count": NUMBERS},
    )


def result(up: Up) -> ToolResult:
    assert isinstance(up, ToolResult), up
    return up


def refusal(up: Up) -> Refusal:
    assert isinstance(up, Refusal), up
    return up


# What passes


async def test_a_call_goes_to_its_server_and_the_answer_comes_back() -> None:
    gate = Gate(lute())
    got = result(await gate.through("mcp://lute/play", {"note": "a"}, id="c7"))
    assert got.content == {"played": {"note": "a"}}
    assert (str(got.uri), got.call_id, got.is_error) == ("mcp://lute/play", "c7", False)
    assert gate.servers["lute"].calls == [("play", {"note": "a"})]


async def test_a_tools_own_error_is_a_result() -> None:
    gate = Gate(lute(broken=ValueError("no string")))
    got = result(await gate.through("mcp://lute/broken"))
    assert got.is_error
    assert got.content == "no string"
    assert gate.kinds == ["verdict allowed", "intent", "outcome error"]


async def test_a_local_tool_passes_the_same_gate() -> None:
    async def act(arguments: Any, context: CallContext) -> Reply:
        return Reply(structured={"got": arguments.value, "run": context.run})

    uri = ToolUri.builtin("echo")
    tool = Builtin(Tool(uri=uri, input_schema=NUMBERS), act, label=TRUSTED)
    gate = Gate(local=LocalTools(builtin=[tool]))
    got = result(await gate.through("builtin://echo", {"count": 1}, id="c9"))
    assert got.content == {"got": {"count": 1}, "run": "r1"}
    assert got.label == Label(sources=frozenset([Source("", "echo", "c9")]))
    assert gate.kinds == ["verdict allowed", "intent", "outcome ok"]
    assert refusal(await gate.through("builtin://echo", {"count": 0})).kind == "arguments"
    with pytest.raises(NotFoundError) as caught:
        await gate.through("builtin://ecco")
    assert caught.value.near == ("builtin://echo",)


# Arguments


async def test_arguments_that_break_the_schema_are_refused_before_they_are_sent_with_path_and_rule() -> None:
    gate = Gate(lute())
    refused = refusal(await gate.through("mcp://lute/count", {"count": 0, "other": 1, "paths": [1]}))
    assert refused.kind == "arguments"
    assert "/count" in refused.reason
    assert "/paths/0" in refused.reason
    assert "mcp://lute/count" in refused.reason
    assert refused.rule
    assert refused.place == "input schema of mcp://lute/count"
    assert gate.servers["lute"].calls == []
    verdict = gate.log.records[0]
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.reason, verdict.rule) == ("refused", "arguments", refused.rule)


async def test_many_faults_are_told_in_a_few() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    gate = Gate(MemoryServer("lute", {"count": 1}, schemas={"count": schema}))
    refused = refusal(await gate.through("mcp://lute/count", {f"k{n}": "x" * 10_000 for n in range(12)}))
    assert "more" in refused.reason
    assert len(refused.reason) < 2000


async def test_needless_nulls_are_dropped_and_json_text_is_decoded_and_labels_stay_where_they_were() -> None:
    seen: list[Any] = []

    async def look(call: Any, inner: Any) -> Any:
        seen.append(call.call.arguments)
        return await inner(call)

    gate = Gate(lute(), guards=[look])
    tainted = {"/paths": UNTRUSTED}
    await gate.through("mcp://lute/count", {"count": 1, "note": None, "paths": '["a", "b"]'}, parts=tainted)
    assert gate.servers["lute"].calls == [("count", {"count": 1, "paths": ["a", "b"]})]
    assert seen[0].at("/paths/0") == UNTRUSTED
    assert seen[0].at("/count") == TRUSTED


async def test_what_fits_is_sent_as_it_is() -> None:
    gate = Gate(lute())
    arguments = {"a": None, "b": "[1]", "c": False, "d": 0, "e": ""}
    await gate.through("mcp://lute/play", arguments)
    assert gate.servers["lute"].calls == [("play", arguments)]


@pytest.mark.parametrize("arguments", [[1], "text", None, 7])
async def test_arguments_that_are_no_mapping_are_refused(arguments: Any) -> None:
    gate = Gate(lute())
    call = intended("mcp://lute/play")
    labelled = msgspec.structs.replace(call.arguments, value=arguments)
    wrong = msgspec.structs.replace(call, arguments=labelled)
    refused = refusal(await gate.settled(gate.gateway.call(wrong)))
    assert refused.kind == "arguments"
    assert gate.servers["lute"].calls == []


@pytest.mark.parametrize("value", [object(), {1: object()}, "\ud800", 1 << 80])
async def test_what_cannot_be_sent_as_json_is_refused_or_sent_whole(value: Any) -> None:
    gate = Gate(lute())
    try:
        up = await gate.through("mcp://lute/play", {"value": value})
    except ProtocolError:
        return
    if isinstance(up, Refusal):
        assert up.kind == "arguments"
        assert gate.servers["lute"].calls == []
    else:
        assert gate.servers["lute"].calls[0][1] == {"value": value}


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "$ref": "http://127.0.0.1:9/x"}, {"type": "nonsense"}, {"$ref": "#/nowhere"}],
)
async def test_a_tool_whose_schema_cannot_be_used_is_refused_and_its_neighbours_are_not(
    schema: dict[str, Any],
) -> None:
    gate = Gate(MemoryServer("lute", {"odd": 1, "play": 2}, schemas={"odd": {"type": "object", **schema}}))
    try:
        refused = refusal(await gate.through("mcp://lute/odd"))
    except NotFoundError:
        return  # the list dropped it already
    finally:
        assert result(await gate.through("mcp://lute/play")).content == 2
    assert (refused.kind, refused.rule) == ("arguments", "schema")


# Access


async def test_what_the_caller_may_not_use_is_refused_with_rule_place_and_hint() -> None:
    gate = Gate(lute(), lute={"allowed_agents": ("ada",)})
    refused = refusal(await gate.through("mcp://lute/play", principals=("operator", "ensemble:x")))
    assert (refused.kind, refused.rule, refused.place) == ("denied", "allowed_agents", "allowed_agents")
    assert "'ensemble:x'" in refused.reason
    assert "Add 'ensemble:x'" in refused.hint
    assert gate.kinds == ["verdict refused"]
    assert gate.servers["lute"].connections == 0


async def test_an_unknown_server_is_not_found_before_anything_starts() -> None:
    gate = Gate(lute())
    with pytest.raises(NotFoundError, match="no server 'flute'"):
        await gate.through("mcp://flute/play")
    assert gate.servers["lute"].connections == 0
    assert gate.kinds == ["verdict failed"]
    assert isinstance(gate.log.records[0], Verdict)
    assert gate.log.records[0].rule == "no such server"


HIDDEN = [
    ({"allowed_agents": ("bob",)}, "denied", "allowed_agents"),
    ({"approved": False}, "approval", "approved"),
]


@pytest.mark.parametrize(("entry", "reason", "rule"), HIDDEN, ids=["forbidden", "unapproved"])
@pytest.mark.parametrize("ask", ["call", "tool", "tools"])
async def test_to_a_model_a_forbidden_or_unapproved_server_and_an_absent_one_look_the_same(
    ask: str, entry: dict[str, Any], reason: str, rule: str
) -> None:
    gate = Gate(lute(), lute=entry)

    async def answer(server: str) -> str:
        uri, context = f"mcp://{server}/play", CallContext(principals=("operator", "ada"))
        asking: Coroutine[Any, Any, object]
        match ask:
            case "call":
                asking = gate.gateway.call(intended(uri, principals=context.principals))
            case "tool":
                asking = gate.gateway.tool(ToolUri.parse(uri), context)
            case _:
                asking = gate.gateway.tools(context, server)
        with pytest.raises(NotFoundError) as caught:
            await gate.settled(asking)
        return str(caught.value).replace(server, "X")

    assert await answer("lute") == await answer("lyre")
    assert gate.servers["lute"].connections == 0
    refused = gate.log.records[0]
    assert isinstance(refused, Verdict)
    assert (refused.verdict, refused.reason, refused.rule, refused.place) == ("refused", reason, rule, rule)


async def test_a_call_of_an_unapproved_server_is_refused_with_what_to_do_and_starts_nothing() -> None:
    gate = Gate(lute(), lute={"approved": False})
    for principals in (("operator",), ("operator", "ensemble:digest")):
        refusal = await gate.through("mcp://lute/play", principals=principals)
        assert isinstance(refusal, Refusal)
        assert (refusal.kind, refusal.rule, refusal.place) == ("approval", "approved", "approved")
        assert refusal.hint.endswith("luthier servers approve lute")
    with pytest.raises(Refused) as caught:
        await gate.settled(gate.gateway.manifest("lute", CallContext()))
    assert caught.value.refusal_kind == "approval"
    assert await gate.settled(gate.gateway.tools(CallContext())) == ()
    assert await gate.gateway.servers(CallContext()) == ()
    assert gate.servers["lute"].connections == 0
    assert gate.kinds == ["verdict refused"] * 3


@pytest.mark.parametrize("ask", ["call", "tool"])
async def test_to_a_model_a_forbidden_tool_and_an_absent_one_look_the_same(ask: str) -> None:
    forbidding = Gate(lute(playing=1), lute={"tools": ToolFilter(deny=("playing",))})
    lacking = Gate(lute())

    async def answer(gate: Gate) -> str:
        uri = "mcp://lute/playing"
        asking: Coroutine[Any, Any, object]
        if ask == "call":
            asking = gate.gateway.call(intended(uri, principals=("ada",)))
        else:
            asking = gate.gateway.tool(ToolUri.parse(uri), CallContext(principals=("ada",)))
        with pytest.raises(NotFoundError) as caught:
            await gate.settled(asking)
        assert caught.value.near == ("play",)
        return str(caught.value)

    assert await answer(forbidding) == await answer(lacking)
    refused = forbidding.log.records[0]
    assert isinstance(refused, Verdict)
    assert (refused.verdict, refused.rule) == ("refused", "tools.deny")


async def test_a_call_that_nobody_makes_finds_nothing() -> None:
    gate = Gate(lute())
    with pytest.raises(NotFoundError):
        await gate.through("mcp://lute/play", principals=())
    assert gate.servers["lute"].connections == 0
    assert gate.kinds == ["verdict refused"]


async def test_near_names_come_from_what_the_caller_may_see() -> None:
    gate = Gate(lute(player=1), lute={"tools": ToolFilter(deny=("player",))})
    with pytest.raises(NotFoundError) as caught:
        await gate.through("mcp://lute/plays")
    assert caught.value.near == ("play",)
    assert "on server 'lute'" in caught.value.message


async def test_a_lookup_is_checked_like_a_call_and_the_operator_is_told_why() -> None:
    gate = Gate(lute(), lute={"tools": ToolFilter(allow=("play",))})
    context = CallContext()
    found = await gate.settled(gate.gateway.tool(ToolUri.parse("mcp://lute/play"), context))
    assert found.name == "play"
    with pytest.raises(Refused) as caught:
        await gate.settled(gate.gateway.tool(ToolUri.parse("mcp://lute/count"), context))
    assert (caught.value.refusal_kind, caught.value.rule) == ("denied", "tools.allow")
    assert gate.kinds == ["verdict refused"]


async def test_listing_shows_what_the_caller_may_use_and_leaves_out_servers_out_of_reach() -> None:
    async def act(arguments: Any, context: CallContext) -> Reply:
        return Reply()

    local = LocalTools(builtin=[Builtin(Tool(uri=ToolUri.builtin("save"), input_schema={}), act)])
    dead, secret = MemoryServer("dead", {"x": 1}), MemoryServer("secret", {"x": 1})
    dead.refusal = "dead"
    gate = Gate(
        lute(),
        dead,
        secret,
        local=local,
        lute={"tools": ToolFilter(deny=("count",))},
        dead={"max_retries": 0},
        secret={"allowed_agents": ("bob",)},
    )
    context = CallContext(principals=("ada",))
    seen = await gate.settled(gate.gateway.tools(context))
    assert [str(tool.uri) for tool in seen] == ["builtin://save", "mcp://lute/play"]
    assert gate.servers["secret"].connections == 0
    only = await gate.settled(gate.gateway.tools(context, "lute"))
    assert [tool.name for tool in only] == ["play"]
    with pytest.raises(ConnectError):
        await gate.settled(gate.gateway.tools(context, "dead"))
    with pytest.raises(Refused):
        await gate.settled(gate.gateway.tools(CallContext(principals=("operator", "ensemble:x")), "secret"))


async def test_one_servers_list_tells_what_the_caller_may_use_and_what_was_passed_over() -> None:
    odd = MemoryServer("odd", {"x": 1, "y": 2, "z": 3}, definitions={"z": {"inputSchema": "none"}})
    gate = Gate(odd, lute(), odd={"tools": ToolFilter(deny=("y",))}, lute={"allowed_agents": ("bob",)})
    context = CallContext(principals=("ada",))
    assert await gate.settled(gate.gateway.servers(context)) == ("odd",)
    assert gate.gateway.local_tools() == ()
    manifest = await gate.settled(gate.gateway.manifest("odd", context))
    assert [tool.name for tool in manifest.tools] == ["x"]
    assert manifest.dropped == ()  # text that nobody approved
    told = await gate.settled(gate.gateway.manifest("odd", CallContext()))
    assert [dropped.name for dropped in told.dropped] == ["z"]


async def test_a_server_that_is_not_there_has_no_tools_to_list() -> None:
    gate = Gate(lute())
    with pytest.raises(NotFoundError) as caught:
        await gate.settled(gate.gateway.tools(CallContext(), "luted"))
    assert caught.value.near == ("lute",)


async def test_a_fault_of_our_own_in_listing_is_not_taken_for_a_server_out_of_reach() -> None:
    class Faulty(ConnectionManager):
        async def manifest(self, server: str, **_: Any) -> Manifest:
            raise ZeroDivisionError(server)

    gate = Gate(lute())
    gateway = Gateway(manager=Faulty(gate.registry), registry=gate.registry, audit=gate.log)
    with pytest.raises(ZeroDivisionError):
        await gate.settled(gateway.tools(CallContext()))


async def test_another_registry_is_another_rule() -> None:
    gate = Gate(lute())
    await gate.through("mcp://lute/play")
    entry = msgspec.structs.replace(gate.registry.get("lute"), disabled=True)
    gate.gateway.use(gate.registry.with_entry(entry))
    assert refusal(await gate.through("mcp://lute/play")).rule == "disabled"


# Faults of the wire


@pytest.mark.parametrize(
    ("behaviour", "error", "outcome"),
    [
        (Fail("broken"), ProtocolError, "protocol"),
        (Drop(), ConnectionLostError, "unknown"),
    ],
)
async def test_a_fault_of_the_wire_is_raised_and_its_kind_is_the_outcome(
    behaviour: Any, error: type[Exception], outcome: str
) -> None:
    gate = Gate(lute(odd=behaviour))
    with pytest.raises(error):
        await gate.through("mcp://lute/odd")
    assert gate.kinds == ["verdict allowed", "intent", f"outcome {outcome}"]
    assert gate.notebook.of(CallEnded)[0].outcome == outcome


async def test_a_server_that_cannot_be_reached_leaves_no_intent() -> None:
    gate = Gate(lute(), lute={"max_retries": 0})
    gate.servers["lute"].refusal = "dead"
    with pytest.raises(ConnectError):
        await gate.through("mcp://lute/play")
    assert gate.kinds == ["verdict failed"]
    assert isinstance(gate.log.records[0], Verdict)
    assert gate.log.records[0].reason == "connect"


async def test_a_calls_own_time_covers_the_looking_up_and_the_call_together() -> None:
    gate = Gate(lute(slow=Progress(100, every=1.0, then="done")), lute={"max_retries": 5})
    gate.servers["lute"].refusal = "not now"
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/slow", timeout=5.0)))
    await gate.clock.advance(1.0)
    gate.servers["lute"].refusal = ""
    await gate.clock.advance(3.9)
    assert gate.servers["lute"].calls
    assert not waiting.done()
    await gate.clock.advance(0.2)
    assert isinstance(waiting.exception(), CallTimeoutError)


@pytest.mark.parametrize(
    ("timeout", "deadline", "ends"), [(5.0, 3.0, 3.0), (3.0, 5.0, 3.0), (None, 3.0, 3.0)]
)
async def test_the_earlier_of_a_calls_time_and_its_deadline_ends_it(
    timeout: float | None, deadline: float, ends: float
) -> None:
    gate = Gate(lute(slow=Hang()))
    call = intended("mcp://lute/slow", timeout=timeout, deadline=deadline)
    waiting = gate.start(gate.gateway.call(call))
    await gate.clock.advance(ends - 0.1)
    assert not waiting.done()
    await gate.clock.advance(0.2)
    assert isinstance(waiting.exception(), CallTimeoutError)


async def test_a_cancelled_caller_leaves_a_whole_log() -> None:
    gate = Gate(lute(slow=Hang()))
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/slow")))
    await settle(100)
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert gate.kinds == ["verdict allowed", "intent", "outcome cancelled"]
    assert gate.notebook.of(CallEnded)[0].outcome == "cancelled"
    assert len(gate.servers["lute"].cancelled) == 1


async def test_a_caller_cancelled_before_its_call_was_carried_leaves_a_verdict() -> None:
    gate = Gate(lute())
    gate.servers["lute"].refusal = "not now"
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/play")))
    await settle(100)
    waiting.cancel()
    await settle()
    assert gate.kinds == ["verdict failed"]
    assert isinstance(gate.log.records[0], Verdict)
    assert gate.log.records[0].reason == "cancelled"


# Labels


@pytest.mark.parametrize(
    ("trust", "arguments", "control", "expected"),
    [
        (UNTRUSTED, TRUSTED, TRUSTED, UNTRUSTED),
        (TRUSTED, TRUSTED, TRUSTED, TRUSTED),
        (TRUSTED, UNTRUSTED, TRUSTED, UNTRUSTED),
        (TRUSTED, TRUSTED, UNTRUSTED, UNTRUSTED),
        (UNTRUSTED, SECRET, TRUSTED, Label(Integrity.untrusted, Confidentiality.secret)),
        (TRUSTED, SECRET, UNTRUSTED, Label(Integrity.untrusted, Confidentiality.secret)),
    ],
)
async def test_a_result_is_no_better_than_its_server_its_arguments_and_its_branch(
    trust: Label, arguments: Label, control: Label, expected: Label
) -> None:
    gate = Gate(lute(), lute={"trust": trust})
    got = result(await gate.through("mcp://lute/play", {"a": 1}, label=arguments, control=control))
    assert (got.label.integrity, got.label.confidentiality) == (expected.integrity, expected.confidentiality)
    assert got.label.sources == {Source("lute", "play", "c1")}


async def test_a_result_names_every_source_that_went_into_it() -> None:
    gate = Gate(lute())
    leaf, branch = Source("web", "fetch", "c0"), Source("mail", "read", "b0")
    got = result(
        await gate.through(
            "mcp://lute/play",
            {"a": {"b": 1}},
            parts={"/a/b": Label(sources=frozenset([leaf]))},
            control=Label(sources=frozenset([branch])),
        )
    )
    assert got.label.sources == {leaf, branch, Source("lute", "play", "c1")}


# What is told and written


async def test_observers_hear_when_a_call_begins_and_how_it_ends() -> None:
    gate = Gate(lute(), lute={"tools": ToolFilter(deny=("plug",))})
    await gate.through("mcp://lute/play", principals=("operator", "ensemble:x"), id="a")
    await gate.through("mcp://lute/plug", id="b")
    started, ended = gate.notebook.of(CallStarted), gate.notebook.of(CallEnded)
    assert [(event.call_id, event.principal, event.run, event.step) for event in started] == [
        ("a", "ensemble:x", "r1", "s1"),
        ("b", "operator", "r1", "s1"),
    ]
    assert [(event.call_id, event.outcome) for event in ended] == [("a", "ok"), ("b", "refused")]


async def test_durations_are_milliseconds_from_the_intent_to_the_answer() -> None:
    gate = Gate(lute(slow=Progress(1, every=1.5, then="done")))
    waiting = gate.start(gate.gateway.call(intended("mcp://lute/slow")))
    await gate.clock.advance(2.0)
    assert result(await waiting).duration == pytest.approx(1500)
    outcome = gate.log.records[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.duration == pytest.approx(1500)
    assert gate.notebook.of(CallEnded)[0].duration == pytest.approx(1500)


async def test_the_log_holds_names_hashes_labels_and_sizes_and_no_value() -> None:
    gate = Gate(lute())
    label = Label(Integrity.untrusted, Confidentiality.private, frozenset([Source("web", "fetch", "c0")]))
    got = result(
        await gate.through(
            "mcp://lute/play",
            {"token": "canary-1", "n": 2},
            label=label,
            principals=("operator", "ensemble:x"),
            id="c5",
        )
    )
    assert refusal(await gate.through("mcp://lute/count", {"count": "canary-2"})).kind == "arguments"
    verdict, intent, outcome, _ = gate.log.records
    text = b'{"n":2,"token":"canary-1"}'
    assert verdict == Verdict(
        call="c5",
        uri="mcp://lute/play",
        verdict="allowed",
        rule="policies.default",
        principals=("operator", "ensemble:x"),
        run="r1",
        step="s1",
        arguments=hashlib.sha256(text).hexdigest(),
        names=("token", "n"),
        label=verdict.label if isinstance(verdict, Verdict) else None,
    )
    (tool,) = (await gate.settled(gate.gateway.review("lute", CallContext()))).tools[:1]
    digest = hashlib.sha256(text).hexdigest()
    assert intent == Intent(call="c5", uri="mcp://lute/play", arguments=digest, pin=tool.hash)
    assert isinstance(outcome, Outcome)
    written = msgspec.json.encode((got.blocks, got.structured))
    assert (outcome.result, outcome.size) == (hashlib.sha256(written).hexdigest(), len(written))
    assert isinstance(verdict, Verdict)
    assert verdict.label is not None
    assert verdict.label.sources == ("web/fetch#c0",)
    assert outcome.label is not None
    assert outcome.label.sources == ("web/fetch#c0",)
    assert "canary" not in str(gate.log.records)


async def test_the_trace_of_a_call_goes_to_its_server_and_into_the_log() -> None:
    gate = Gate(lute())
    trace = Trace.fresh()
    await gate.through("mcp://lute/play", trace=trace)
    with pytest.raises(NotFoundError):
        await gate.through("mcp://lute/plan", trace=trace)
    verdicts = [record for record in gate.log.records if isinstance(record, Verdict)]
    assert [verdict.trace for verdict in verdicts] == [trace.id, trace.id]
    (sent,) = [message for message in gate.servers["lute"].received if message["method"] == "tools/call"]
    assert sent["params"]["_meta"]["traceparent"] == trace.parent
    assert "tracestate" not in sent["params"]["_meta"]


async def test_many_names_and_sources_are_cut_in_the_log() -> None:
    gate = Gate(lute())
    sources = frozenset(Source("web", "fetch", f"c{number:03}") for number in range(100))
    arguments = {f"{number}-{'x' * 300}": 1 for number in range(100)}
    await gate.through("mcp://lute/play", arguments, label=Label(sources=sources))
    verdict = gate.log.records[0]
    assert isinstance(verdict, Verdict)
    assert len(verdict.names) == 64
    assert {len(name) for name in verdict.names} == {128}
    assert verdict.label is not None
    assert len(verdict.label.sources) == 33
    assert verdict.label.sources[-1] == "and 68 more"


async def test_an_answer_that_only_the_lenient_reader_takes_is_hashed_all_the_same() -> None:
    async def act(arguments: Any, context: CallContext) -> Reply:
        return Reply(blocks=[{"type": "text", "text": "\ud800"}], structured=1 << 80)

    uri = ToolUri.builtin("odd")
    gate = Gate(local=LocalTools(builtin=[Builtin(Tool(uri=uri, input_schema={}), act)]))
    assert result(await gate.through("builtin://odd")).content == 1 << 80
    outcome = gate.log.records[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.result
    assert outcome.size > 20


async def test_calls_at_once_are_each_written_whole() -> None:
    gate = Gate(lute())
    calls = [gate.gateway.call(intended("mcp://lute/play", {"n": n}, id=f"c{n}")) for n in range(50)]
    got = await asyncio.gather(*calls)
    assert [result(up).content["played"]["n"] for up in got] == list(range(50))
    for kind in (Verdict, Intent, Outcome):
        assert sorted(record.call for record in gate.log.records if isinstance(record, kind)) == sorted(
            f"c{n}" for n in range(50)
        )
