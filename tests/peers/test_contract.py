"""One contract, kept with servers of both frameworks over every transport and in every revision."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import CallTimeoutError
from luthier.events import CallProgressed, ServerReady
from tests.faults.bench import MARK, MODERN, Bench, House, until
from tests.faults.peer import HANDSHAKE
from tests.faults.rows.lists import eventually, has
from tests.peers.standing import SERVERS, free_port, standing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

FASTMCP = os.environ.get("LUTHIER_FASTMCP", "")
PYTHONS = {"official": sys.executable, "fastmcp": f"{FASTMCP}/bin/python" if FASTMCP else ""}
SCRIPTS = {"official": "official.py", "fastmcp": "fast.py"}
REVISIONS: dict[str, tuple[str | None, ...]] = {
    "stdio": (HANDSHAKE[-1], MODERN),  # a process for each test: the others are tried in tests/wire
    "json": (*HANDSHAKE[1:], MODERN, None),
    "events": (*HANDSHAKE[1:], MODERN, None),
    "sse": (*HANDSHAKE, None),
}
UNICODE = "ä☃\u2028\u0085 👩‍🚀 \x7f \\u0000 é"
numbers = itertools.count(1)


@dataclass(frozen=True)
class Case:
    """A server of one framework, a transport, and the revision that the entry pins."""

    peer: str
    transport: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.peer}-{self.transport}-{self.revision or 'auto'}"


ALL = [
    Case(peer, transport, revision)
    for peer in SCRIPTS
    for transport, revisions in REVISIONS.items()
    for revision in revisions
]
ERAS = [case for case in ALL if case.revision in {HANDSHAKE[-1], MODERN}]


@dataclass
class Street:
    """The servers by HTTP, started when they are first needed."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    ports: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    def port(self, case: Case) -> int:
        key = case.peer, case.transport
        if key not in self.ports:
            port = self.ports[key] = free_port()
            self.stack.enter_context(standing([PYTHONS[case.peer], *self.arguments(case, port)], port))
        return self.ports[key]

    def arguments(self, case: Case, port: int = 0) -> list[str]:
        return [str(SERVERS / SCRIPTS[case.peer]), case.transport, str(port), str(self.notes)]

    def fields(self, case: Case, mark: str) -> dict[str, Any]:
        """An entry as a project file would say it."""
        if case.transport == "stdio":
            # A command is looked up by its bare name, and this Python may be another than ours.
            script = self.folder / "start"
            script.write_text('exec "$@"\n')
            args = [str(script), PYTHONS[case.peer], *self.arguments(case)]
            return {"command": "sh", "args": args, "env": {MARK: mark}}
        path = "sse" if case.transport == "sse" else "mcp"
        kind = "sse" if case.transport == "sse" else "http"
        url = f"http://127.0.0.1:{self.port(case)}/{path}"
        return {"url": url, "transport": "auto" if case.revision is None else kind}


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    found = Street(tmp_path_factory.mktemp("street"))
    with found.stack:
        yield found


def params(cases: list[Case]) -> pytest.MarkDecorator:
    missing = pytest.mark.skip(reason="LUTHIER_FASTMCP is not set: no FastMCP here")
    return pytest.mark.parametrize(
        "case",
        [pytest.param(case, id=str(case), marks=[] if PYTHONS[case.peer] else missing) for case in cases],
    )


every, newest = params(ALL), params(ERAS)


@pytest.fixture
async def house(case: Case, street: Street, tmp_path: Path) -> AsyncIterator[House]:
    bench = Bench(tmp_path, "plain")
    said = street.fields(case, bench.mark) | {"max_retries": 0, "tool_timeout_ms": 15_000}
    if case.revision is not None:
        said["protocol"] = case.revision
    entry = bench.read(said, id="peer")
    try:
        async with bench.house(entry, allowed_commands=("sh",)) as found:
            yield found
    finally:
        bench.kill_leftovers()


@every
async def test_what_is_listed_called_and_given_back_arrives_whole(house: House, case: Case) -> None:
    assert {"echo", "add", "fail", "steps", "wait", "grow", "big"} <= set(await house.names("peer"))
    replies = await asyncio.gather(
        *(house.call("echo", server="peer", text=f"{UNICODE} {n}") for n in range(16))
    )
    assert [reply.blocks[0]["text"] for reply in replies] == [f"{UNICODE} {n}" for n in range(16)]

    total = await house.call("add", server="peer", a=2, b=40)
    assert total.content == {"total": 42, "terms": [2, 40]}
    assert total.notes == ()
    failed = await house.call("fail", server="peer")
    assert failed.is_error
    assert "the disk is full" in failed.blocks[0]["text"]
    wrong = await house.call("add", server="peer", a="two")
    assert wrong.is_error

    size = 2_000_000
    big = await house.call("big", server="peer", size=size)
    assert len(big.blocks[0]["text"]) == size
    assert (await house.call("echo", server="peer", text="well")).blocks[0]["text"] == "well"
    spoken = [event.protocol for event in house.watcher.of(ServerReady)]
    assert len(spoken) == 1
    assert spoken[0] == (case.revision or (HANDSHAKE[-1] if case.transport == "sse" else MODERN))


@newest
async def test_progress_is_told_as_it_comes(house: House, case: Case) -> None:
    reply = await house.call("steps", server="peer", times=3)
    assert reply.blocks[0]["text"] == "done"
    told = [(event.progress, event.total) for event in house.watcher.of(CallProgressed)]
    # Who answers by one JSON body has nowhere to put it.
    expected = [] if case.transport == "json" else [(n, 3) for n in (1, 2, 3)]
    assert told in (expected, [(n, 3) for n in (1, 2, 3)])


@newest
async def test_a_call_that_is_given_up_ends_at_the_server(house: House, case: Case, street: Street) -> None:
    name = f"{case}-{next(numbers)}"
    task = asyncio.create_task(house.call("wait", server="peer", name=name))
    await until(lambda: f"waiting {name}" in noted(street), what="the call runs")
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    if not deaf(case):
        await until(lambda: f"cancelled {name}" in noted(street), what="the call is ended")

    with pytest.raises(CallTimeoutError) as raised:
        await house.call("wait", server="peer", timeout=0.5, name=f"{name}-late")
    assert raised.value.sent
    if not deaf(case):
        await until(lambda: f"cancelled {name}-late" in noted(street), what="the call is ended")
    assert (await house.call("echo", server="peer", text="well")).blocks[0]["text"] == "well"


def deaf(case: Case) -> bool:
    """Whether the server cannot hear that a caller left: it looks at the connection only when it answers."""
    return case.transport == "json" and case.revision == MODERN


def noted(street: Street) -> list[str]:
    return street.notes.read_text().splitlines() if street.notes.exists() else []


@newest
async def test_a_list_that_grows_is_read_again(house: House, case: Case) -> None:
    name = f"grown{next(numbers)}"
    assert name not in await house.names("peer")
    await house.call("grow", server="peer", name=name)
    if case == Case("fastmcp", "json", HANDSHAKE[-1]):
        # Its notice goes to the stream of the call, which an answer as JSON does not have.
        await house.manager.manifest("peer", fresh=True)
    await eventually(lambda: has(house, name, "peer"))
    assert "grown" in (await house.call(name, server="peer")).blocks[0]["text"]
