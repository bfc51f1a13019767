"""Fail closed: each guard with each fault says no, nothing is sent, and the no is written down.

The table is complete: a guard and a fault that it cannot have are named with the reason. The list of guards
is the one that the gate folds, so a guard that is added without its faults fails here.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from luthier.clock import settle
from luthier.connect import MemoryState
from luthier.errors import AuditError, LuthierError, StoreError
from luthier.govern import AuditKey, FileAudit, Gateway, MemoryAudit, Verdict
from luthier.spec import Budget, LabelTest, Policies, PolicyRule, ToolFilter
from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools import Refusal, ToolResult
from luthier.wire import MemoryServer
from tests.govern.kit import Gate, intended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from luthier.tools import ToolCall

FAULTS = ("exception", "timeout", "corrupt", "missing")
LONG = 30.0
ASK = Policies(rules=(PolicyRule(name="ask", then="ask"),))
LEAVE = threading.Event()  # for what hangs in a thread


@pytest.fixture(scope="module", autouse=True)
def _leave() -> Iterator[None]:
    LEAVE.clear()  # one process may run these tests again and again
    yield
    LEAVE.set()


def lute(**rest: Any) -> MemoryServer:
    return MemoryServer("lute", {"play": "a note"}, **rest)


class Silent(MemoryServer):
    """Never says what it has."""

    def take(self, connection: Any, message: dict[str, Any]) -> None:
        if message.get("method") != "tools/list":
            super().take(connection, message)


class Store:
    """A store whose method does something else for one kind; `kind` None: for `revision` too."""

    def __init__(self, method: str, kind: str | None, does: Callable[[], Any]) -> None:
        self._real = MemoryState()
        self._method, self._kind, self._does = method, kind, does

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name != self._method:
            return real
        return lambda *rest: self._does() if self._kind in (None, *rest[:1]) else real(*rest)


def broken() -> Any:
    raise StoreError("The disk is gone.")


def hangs() -> Any:
    LEAVE.wait(LONG)


class Odd:
    """A part of the gate of which one method does something else."""

    def __init__(self, real: Any, method: str, does: Callable[..., Any]) -> None:
        self._real, self._method, self._does = real, method, does

    def __getattr__(self, name: str) -> Any:
        return self._does if name == self._method else getattr(self._real, name)

    def __iter__(self) -> Any:
        return iter(self._real)


def raising(*_: Any, **__: Any) -> Any:
    raise RuntimeError("broken")


class Cell:
    """A gate with a fault, and the call that meets it."""

    def __init__(self, gate: Gate, call: ToolCall | None = None, *, gateway: Gateway | None = None) -> None:
        self.gate = gate
        self.call = call or intended("mcp://lute/play", {"a": 1})
        self.gateway = gateway or gate.gateway


def with_part(name: str, odd: Callable[[Any], Any], gate: Gate | None = None) -> Cell:
    gate = gate or Gate(lute())
    parts: dict[str, Any] = {"registry": gate.registry, "manager": gate.manager, "policy": gate.policy}
    parts[name] = odd(parts[name])
    return Cell(gate, gateway=Gateway(audit=gate.log, clock=gate.clock, **parts))


def labelled(arguments: Any) -> Cell:
    import msgspec

    call = msgspec.structs.replace(intended("mcp://lute/play"), arguments=arguments)
    return Cell(Gate(lute()), call)


def stored(method: str, kind: str | None, does: Callable[[], Any], **rest: Any) -> Cell:
    return Cell(Gate(lute(), state=cast("Any", Store(method, kind, does)), **rest))


def ruled(*rules: PolicyRule, **rest: Any) -> Cell:
    return Cell(Gate(lute(), policies=Policies(rules=rules), **rest))


def heavy() -> dict[str, Any]:
    chain = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    return {"$defs": {**chain, "d30": {}}, "$ref": "#/$defs/d0"}


def answering(answer: Any) -> Callable[[Any], Any]:
    return lambda _: answer


async def never(_: Any) -> bool:
    await asyncio.Event().wait()
    return True


def unwritable(tmp_path: Path) -> Cell:
    log = FileAudit(tmp_path, key=lambda: AuditKey(bytes(range(32))))
    return Cell(Gate(lute(), audit=log), intended("mcp://lute/play", step="\ud800"))


CELLS: dict[tuple[str, str], Callable[[], Cell]] = {
    ("labels", "exception"): lambda: labelled(Labelled({}, TRUSTED, cast("Any", [1]))),
    ("labels", "corrupt"): lambda: labelled(Labelled({}, Label(cast("Any", 7)))),
    ("labels", "missing"): lambda: labelled(Labelled({}, cast("Any", None))),
    ("kill switch", "exception"): lambda: stored("revision", None, broken, switched=True),
    ("kill switch", "timeout"): lambda: stored("revision", None, hangs, switched=True),
    ("kill switch", "corrupt"): lambda: stored("list", "disabled", lambda: 7, switched=True),
    ("kill switch", "missing"): lambda: stored("list", "disabled", lambda: None, switched=True),
    ("access", "exception"): lambda: with_part("registry", lambda real: Odd(real, "find", raising)),
    ("access", "corrupt"): lambda: Cell(Gate(lute(), lute={"allowed_agents": cast("Any", 5)})),
    ("access", "missing"): lambda: Cell(Gate(lute()), intended("mcp://harp/play")),
    ("resolved", "exception"): lambda: with_part("manager", lambda real: Odd(real, "known", raising)),
    ("resolved", "timeout"): lambda: Cell(
        Gate(Silent("lute", {"play": "a note"}), lute={"timeout": 2.0, "max_retries": 0})
    ),
    ("resolved", "corrupt"): lambda: Cell(Gate(lute(definitions={"play": {"inputSchema": 7}}))),
    ("resolved", "missing"): lambda: Cell(Gate(lute()), intended("mcp://lute/pluck")),
    ("pins", "exception"): lambda: stored("get", "pins", broken),
    ("pins", "timeout"): lambda: stored("get", "pins", hangs),
    ("pins", "corrupt"): lambda: stored("get", "pins", lambda: {"play": 7}),
    ("pins", "missing"): lambda: Cell(Gate(lute(), environment="production")),
    ("shown", "exception"): lambda: with_part("policy", lambda real: Odd(real, "denial", raising)),
    ("shown", "corrupt"): lambda: ruled(PolicyRule(name="x", then=cast("Any", "maybe"))),
    ("arguments", "exception"): lambda: Cell(Gate(lute(schemas={"play": {"type": 5}}))),
    ("arguments", "timeout"): lambda: Cell(Gate(lute(schemas={"play": heavy()}))),
    ("arguments", "corrupt"): lambda: Cell(Gate(lute()), intended("mcp://lute/play", "no mapping")),
    ("arguments", "missing"): lambda: Cell(Gate(lute(schemas={"play": {"required": ["b"]}}))),
    ("policy", "exception"): lambda: ruled(
        PolicyRule(name="x", then="deny", argument="/a", label=cast("LabelTest", "untrusted"))
    ),
    ("policy", "corrupt"): lambda: ruled(PolicyRule(name="x", then=cast("Any", 7), argument="/a")),
    ("policy", "missing"): lambda: vanished(),  # noqa: PLW0108  (it stands below)
    ("function", "exception"): lambda: Cell(Gate(lute(), checks=[raising])),
    ("function", "timeout"): lambda: Cell(Gate(lute(), checks=[lambda _: hangs()])),
    ("function", "corrupt"): lambda: Cell(Gate(lute(), checks=[answering(1)])),
    ("approval", "exception"): lambda: stored("swap", "approvals", broken, asks=True, policies=ASK),
    ("approval", "timeout"): lambda: stored("swap", "approvals", hangs, asks=True, policies=ASK),
    ("approval", "corrupt"): lambda: stored("get", "approvals", lambda: {"state": "approved"}, **WAITS),
    ("approval", "missing"): lambda: stored("get", "approvals", lambda: None, **WAITS),
    ("callback", "exception"): lambda: Cell(Gate(lute(), policies=ASK, approve=raising)),
    ("callback", "timeout"): lambda: Cell(Gate(lute(), policies=ASK, approve=never, approval_timeout=2.0)),
    ("callback", "corrupt"): lambda: Cell(Gate(lute(), policies=ASK, approve=answering("yes"))),
    ("callback", "missing"): lambda: Cell(Gate(lute(), policies=ASK, approve=answering(None))),
    ("answered", "missing"): lambda: Cell(Gate(lute(), policies=ASK)),
    ("budget", "exception"): lambda: Cell(
        Gate(lute(), budgets=(Budget(name="x", per=cast("Any", "week"), calls=1),))
    ),
    ("budget", "corrupt"): lambda: Cell(
        Gate(lute(), budgets=(Budget(name="x", per="run", calls=cast("Any", "many")),))
    ),
    ("verdict", "exception"): lambda: Cell(Gate(lute(), audit=MemoryAudit(fails="verdict"))),
    ("intent", "exception"): lambda: Cell(Gate(lute(), audit=MemoryAudit(fails="intent"))),
}

WAITS: dict[str, Any] = {"asks": True, "approval_timeout": 10.0, "policies": ASK}

CANNOT: dict[tuple[str, str], str] = {
    ("labels", "timeout"): "looks at values in hand",
    ("access", "timeout"): "looks at values in hand",
    ("shown", "timeout"): "looks at values in hand",
    ("policy", "timeout"): "looks at values in hand",
    ("budget", "timeout"): "looks at values in hand",
    ("answered", "timeout"): "looks at values in hand",
    ("answered", "exception"): "compares one value",
    ("answered", "corrupt"): "whatever stands there is a question that nobody answered",
    ("shown", "missing"): "a rule that is not there denies nothing; the default is always there",
    ("function", "missing"): "None is no opinion; a function that is not there is not asked",
    ("budget", "missing"): "a counter that is not there stands at nothing",
    ("verdict", "timeout"): "one system call on the loop: while it lasts, nothing at all is done",
    ("intent", "timeout"): "one system call on the loop: while it lasts, nothing at all is done",
    ("verdict", "missing"): "a folder that is not there is made, or cannot be: that is the exception",
    ("intent", "missing"): "a folder that is not there is made, or cannot be: that is the exception",
    ("verdict", "corrupt"): "what is no text cannot be written: see the test below",
    ("intent", "corrupt"): "what is no text cannot be written: see the test below",
}

GUARDS = tuple(dict.fromkeys(guard for guard, _ in (*CELLS, *CANNOT)))


def vanished() -> Cell:
    """The entry is there when access is judged, and gone when its word on the tool is wanted."""
    gate = Gate(lute(), policies=Policies(rules=(PolicyRule(name="x", then="deny", argument="/b"),)))
    gate.policy.use(gate.registry.without("lute"))
    return Cell(gate)


async def ended(cell: Cell) -> Any:
    """What the call ends with, while time passes."""
    task = cell.gate.start(cell.gateway.call(cell.call))
    async with asyncio.timeout(LONG):
        while not task.done():
            await settle()
            if cell.gate.clock.waiting:
                await cell.gate.clock.advance(0.5)
    try:
        return task.result()
    except Exception as error:  # noqa: BLE001  (looked at by the test)
        return error


@pytest.mark.parametrize(("guard", "fault"), CELLS, ids=" × ".join)
async def test_the_answer_is_no_and_is_written_down(guard: str, fault: str) -> None:
    cell = CELLS[guard, fault]()
    got = await ended(cell)
    assert cell.gate.servers["lute"].calls == [], "nothing is sent"
    assert isinstance(got, (Refusal, LuthierError)), got
    if isinstance(got, Refusal):
        assert got.rule, "the rule is named"
        assert got.place, "and where it stands"
        assert got.hint, "and what would allow it"
    if guard in ("verdict", "intent"):
        assert isinstance(got, AuditError), "what cannot be written down is not done"
        assert isinstance(await ended(cell), AuditError), "and neither is anything after it"
        return
    last = cell.gate.log.records[-1]
    assert isinstance(last, Verdict)
    assert last.verdict == ("refused" if isinstance(got, Refusal) else "failed")


async def test_what_cannot_be_written_as_text_is_not_done(tmp_path: Path) -> None:
    cell = unwritable(tmp_path)
    assert isinstance(await ended(cell), AuditError)
    assert cell.gate.servers["lute"].calls == []


async def test_the_gate_of_every_cell_lets_a_good_call_pass() -> None:
    gate = Gate(
        lute(),
        switched=True,
        policies=ASK,
        approve=answering(True),  # noqa: FBT003
        checks=[answering("allow")],
        budgets=(Budget(name="x", per="run", calls=1),),
        lute={"tools": ToolFilter(ask=("*",))},
    )
    task = gate.start(gate.gateway.call(intended("mcp://lute/play", {"a": 1})))
    await gate.in_pauses(task.done)
    assert isinstance(task.result(), ToolResult)


def test_the_table_is_complete(figure: Callable[[str], None]) -> None:
    cells = {(guard, fault) for guard in GUARDS for fault in FAULTS}
    assert cells == CELLS.keys() | CANNOT.keys()
    assert not CELLS.keys() & CANNOT.keys()
    figure(
        f"fail closed: {len(CELLS)} of {len(CELLS)} guard × fault cells deny and are audited, "
        f"{len(CANNOT)} of {len(cells)} cannot happen"
    )


def test_the_table_knows_every_guard_of_the_gate() -> None:
    """Those that only tell or carry, and the one that is a part of another row, stand here by name."""
    import inspect

    source = inspect.getsource(Gateway.__init__)
    folded = source[source.index("fold(") :]
    named = {
        "self._told": "tells only, and a fault of an observer is the observer's",
        "self._recorder.verdict": "verdict",
        "labelled": "labels",
        "switch.guard": "kill switch",
        "self._admitted": "access",
        "headers_guard": "labels",  # of values in hand, given by Python callers only
        "self._resolved": "resolved",
        "self._shown": "shown",
        "Arguments": "arguments",
        "self._policy.guard": "policy",
        "*guards": "approval",
        "answered": "answered",
        "self._unchanged": "pins",
        "announced": "tells the record of a run only, and a fault of that is the run's",
        "self._recorder.carried": "intent",
    }
    listed = [line.strip() for line in folded.split("),\n            self._carried")[0].splitlines()[2:]]
    unknown = [line for line in listed if line.strip("(),") and not any(name in line for name in named)]
    assert unknown == []
