"""Traces: one for each run from the outside, the caller's where it has one, in the log and at the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier import Runtime
from luthier.govern import Endorsed, Verdict
from luthier.testing import MemoryAudit, MemoryServer
from luthier.trace import Trace
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from pathlib import Path

GREET: dict[str, Any] = {
    "name": "greet",
    "operation": "tools",
    "config": {"mcp": "greeter", "tool": "greet"},
}
INNER: dict[str, Any] = {"ensemble": "inner", "agents": [GREET]}
OUTER: dict[str, Any] = {
    "ensemble": "outer",
    "agents": [
        GREET,
        {"name": "nested", "operation": "ensemble", "config": {"ensemble": "inner"}, "depends_on": ["greet"]},
        {
            "name": "sure",
            "operation": "endorse",
            "config": {"value": "${1 > 0}", "as": "boolean", "reason": "a test"},
        },
    ],
}


def house(root: Path, server: MemoryServer, audit: MemoryAudit) -> Runtime:
    return Runtime.open(
        {"mcpServers": {"greeter": {"command": "python", "args": ["none.py"]}}},
        root=root,
        ensembles=[OUTER, INNER],
        transports={"greeter": server.transport},
        audit=audit,
    )


def sent(server: MemoryServer) -> list[str]:
    """The trace of each call that the server got."""
    calls = [message for message in server.received if message["method"] == "tools/call"]
    return [call["params"].get("_meta", {}).get("traceparent", "") for call in calls]


def noted(audit: MemoryAudit) -> list[str]:
    """The trace of each line of the log that may have one."""
    return [record.trace for record in audit.records if isinstance(record, Verdict | Endorsed)]


async def test_a_run_and_what_runs_in_it_are_one_trace_and_the_next_is_another(tmp_path: Path) -> None:
    server, audit = MemoryServer("greeter", {"greet": "hello"}), MemoryAudit()
    async with house(tmp_path, server, audit) as rt:
        assert (await rt.run("outer")).success
        assert (await rt.run("inner")).success
    first, second, third = sent(server)
    assert first == second != third
    assert Trace.read(first) is not None
    assert noted(audit)[:3] == [first[3:35]] * 3
    assert noted(audit)[3:] == [third[3:35]]


async def test_a_client_that_has_a_trace_has_its_runs_and_calls_in_it(tmp_path: Path) -> None:
    server, audit = MemoryServer("greeter", {"greet": "hello"}), MemoryAudit()
    trace = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "congo=t61")
    async with house(tmp_path, server, audit) as rt:
        client = rt.client("ci", trace=trace)
        assert (await client.start(rt.ensemble("inner"), {}).wait()).success
        await client.call(ToolUri.mcp("greeter", "greet"), {})
        await rt.call("mcp://greeter/greet")
    assert sent(server) == [trace.parent, trace.parent, ""]
    assert noted(audit) == [trace.id, trace.id, ""]
    states = [message["params"].get("_meta", {}).get("tracestate") for message in server.received]
    assert [state for state in states if state] == ["congo=t61", "congo=t61"]
