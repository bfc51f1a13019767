"""The store of requests fails in its Nth operation, for every N: nothing is done twice, nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from luthier import Runtime
from luthier.connect import MemoryState
from luthier.errors import LuthierError, StoreError
from luthier.testing import MemoryAudit, MemoryServer
from luthier.workflows import MemoryRuns
from luthier.workflows.runs import Wanted
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from luthier.workflows import Run

WAITS = {
    "ensemble": "waits",
    "agents": [
        {"name": "ask", "operation": "hitl", "config": {"prompt": "Pay?", "schema": {"integer": [1, 9]}}},
        {
            "name": "pay",
            "operation": "tools",
            "config": {"mcp": "s", "tool": "do"},
            "input": {"sum": "${ask.output.answer}"},
        },
    ],
    "outputs": "${pay.output}",
}
PROJECT = {
    "mcpServers": {"s": {"command": "python", "args": ["none.py"]}},
    "policies": [{"name": "pay", "when": {"tool": "mcp://s/do"}, "then": "ask", "reason": "It costs money."}],
}


class Failing(MemoryState):
    """Fails once, in the operation of that number that is about a request."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def _counted(self, kind: str) -> None:
        if kind == "approvals":
            self.left -= 1
            if self.left == 0:
                raise StoreError("The store fails, as the drill wants it.")

    def get(self, kind: str, key: str) -> Any:
        self._counted(kind)
        return super().get(kind, key)

    def list(self, kind: str) -> Any:
        self._counted(kind)
        return super().list(kind)

    def swap(self, kind: str, key: str, expected: Any, value: Any) -> bool:
        self._counted(kind)
        return super().swap(kind, key, expected, value)


class World:
    """Everything that outlasts a process."""

    def __init__(self, root: Path, at: int) -> None:
        self.root = root
        self.state = Failing(at)
        self.runs = MemoryRuns()
        self.paid: list[Any] = []
        self.server = MemoryServer("s", {"do": self.pay})

    def pay(self, given: dict[str, Any]) -> str:
        self.paid.append(given)
        return "paid"

    def opened(self) -> Runtime:
        parts: dict[str, Any] = {
            "transports": {"s": self.server.transport},
            "state": self.state,
            "runs": self.runs,
        }
        return Runtime.open(PROJECT, root=self.root, ensembles=[WAITS], audit=MemoryAudit(), **parts)

    async def through(self) -> Run | None:
        """The run at its end, decided about and gone on with as often as that takes."""
        run = None
        with suppress(StoreError):
            async with self.opened() as runtime:
                run = await runtime.run("waits", durable=True)
        for _ in range(8):
            left = [row.id for row in self.runs.list(Wanted()) if row.ended_at is None]
            if not left:
                break
            with suppress(LuthierError):
                async with self.opened() as runtime:
                    for one in await runtime.approvals.list():
                        if one.state == "waiting":
                            answer = 7 if one.schema else msgspec.UNSET
                            await runtime.approvals.approve(one.id, answer=answer)
            with suppress(LuthierError):
                async with self.opened() as runtime:
                    run = await runtime.runs.resume(left[0])
        return run


async def test_the_store_fails_once_anywhere(tmp_path: Path, figure: Callable[[str], None]) -> None:
    ends: Counter[str] = Counter()
    for at in count(1):
        world = World(tmp_path / str(at), at)
        async with asyncio.timeout(LONG):
            run = await world.through()
        assert run is not None
        assert not run.suspended
        assert len(world.paid) <= 1
        if run.success:
            assert (run.output, world.paid) == ("paid", [{"sum": 7}])
            assert MemoryState.list(world.state, "approvals") == {}, at
        else:
            assert run.error is not None
            assert run.error["kind"] in ("store", "approval", "denied"), run.error
            assert world.paid == []
        ends["ok" if run.success else "failed"] += 1
        if world.state.left > 0:
            break
    assert ends["ok"] > 1
    figure(f"requests: the store failed in each of {at - 1} operations: {dict(ends)}, 0 paid twice")
