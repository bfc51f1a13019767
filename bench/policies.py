"""What labels and policies cost a call that no rule fits: reading its labels, and the guards."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from luthier.clock import SystemClock
from luthier.connect import ServerRegistry
from luthier.govern import GateCall, Policy
from luthier.govern.guard import Ledger
from luthier.govern.labels import known_label, labelled
from luthier.spec import ServerEntry, read_project
from luthier.taint import TRUSTED, UNTRUSTED, Label, Labelled
from luthier.tools import Tool, ToolCall
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 20_000
ROUNDS = 9

RULES = [
    {"name": "mail", "when": {"tool": "mcp://mail/*"}, "then": "ask"},
    {"name": "flow", "when": {"argument": "*", "label": {"integrity": "untrusted"}}, "then": "ask"},
    {"name": "secret", "when": {"label": {"confidentiality": "secret"}}, "then": "deny"},
    {"name": "force", "when": {"tool": "mcp://git/*", "argument": "/force"}, "then": "deny"},
    {"name": "agent", "when": {"agent": "writer", "annotations": {"destructiveHint": True}}, "then": "deny"},
]
ARGUMENTS = {"repo_path": ".", "max_count": 3, "options": {"paths": ["a", "b"]}}


def through(policy: Policy, tool: Tool, label: Label, parts: dict[str, Label]) -> Callable[[], Any]:
    """One call past everything that labels and policies add to it."""
    call = ToolCall(id="c1", uri=tool.uri, arguments=Labelled(ARGUMENTS, label, parts))
    principals = call.context.principals

    def carried(_: GateCall) -> Any:
        return None

    def judged(gated: GateCall) -> Any:
        policy.denial(tool, principals)
        return policy.guard(gated, carried)

    def once() -> Any:
        known = known_label(call)
        return labelled(GateCall(call, known or label, Ledger(), tool), judged)

    return once


def taken(once: Callable[[], Any]) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        once()
    return (time.process_time() - start) / CALLS * 1e6


def main() -> None:
    registry = ServerRegistry([ServerEntry(id="git", command="python")])
    tool = Tool(uri=ToolUri.mcp("git", "git_log"), input_schema={})

    def policy(rules: list[dict[str, Any]]) -> Policy:
        return Policy(read_project({"policies": rules}).policies, registry, clock=SystemClock())

    parts = {"/repo_path": TRUSTED, "/options/paths": UNTRUSTED}
    cases = {
        "no rules": through(policy([]), tool, TRUSTED, {}),
        "5 rules, trusted arguments": through(policy(RULES), tool, TRUSTED, {}),
        "5 rules, one untrusted leaf, 4 rules tried": through(
            policy([RULES[0], *RULES[2:]]), tool, TRUSTED, parts
        ),
        "200 rules for other tools": through(policy(RULES[:1] * 200), tool, TRUSTED, parts),
    }
    for name, once in cases.items():
        once()
        print(f"{name:45} {statistics.median(taken(once) for _ in range(ROUNDS)):5.2f} µs of CPU a call")


main()
