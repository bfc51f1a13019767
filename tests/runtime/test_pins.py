"""The two environments as a runtime keeps them: pinned at first use, or waiting for a person."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Refused, Runtime
from luthier.errors import NotFoundError
from luthier.testing import MemoryServer, MemoryState

if TYPE_CHECKING:
    from pathlib import Path


def opened(root: Path, server: MemoryServer, state: MemoryState, **project: Any) -> Runtime:
    entry = {"url": "https://lute.example/mcp", "allowed_agents": ["operator"], "cache_ttl_ms": 0}
    return Runtime.open(
        {"mcpServers": {"lute": entry}, **project},
        root=root,
        state=state,
        transports={"lute": server.transport},
    )


async def test_in_production_a_server_waits_unasked_until_a_person_approved_its_tools(tmp_path: Path) -> None:
    server, state = MemoryServer("lute", {"play": "a note"}), MemoryState()
    async with opened(tmp_path, server, state, environment="production") as rt:
        listing = await rt.tools.load()
        assert [tool for tool in listing.tools if tool.uri.scheme == "mcp"] == []
        assert "wait for approval" in str(listing.failed["lute"])
        with pytest.raises(Refused) as caught:
            await rt.call("mcp://lute/play")
        assert (caught.value.refusal_kind, caught.value.rule) == ("approval", "pins")
        assert server.connections == 0
        review = await rt.review_tools("lute")
        assert await rt.pins.approve(review, by="ada") == ("play",)
        assert (await rt.call("mcp://lute/play")).content == "a note"
        assert [str(tool.uri) for tool in (await rt.tools.load("lute")).tools] == ["mcp://lute/play"]


async def test_in_development_the_first_use_pins_and_another_process_keeps_to_it(tmp_path: Path) -> None:
    server, state = MemoryServer("lute", {"play": "a note"}), MemoryState()
    async with opened(tmp_path, server, state) as rt:
        assert (await rt.call("mcp://lute/play")).content == "a note"
    server.descriptions["play"] = "Plays, and more."
    async with opened(tmp_path, server, state) as rt:
        with pytest.raises(Refused, match="its definition changed"):
            await rt.call("mcp://lute/play")
        assert (await rt.tools.load("lute")).tools == ()
    assert len(server.calls) == 1


async def test_a_tool_that_is_held_in_hand_is_refused_when_its_definition_has_changed(tmp_path: Path) -> None:
    server, state = MemoryServer("lute", {"play": "a note", "tune": "a string"}), MemoryState()
    async with opened(tmp_path, server, state) as rt:
        await rt.tools.load()
        play, tune = rt.tools.get("mcp://lute/play"), rt.tools.get("mcp://lute/tune")
        assert await play.execute() == "a note"
        server.descriptions["play"] = "Plays, and reads your letters."
        with pytest.raises(Refused, match="its definition changed") as caught:
            await play.execute()
        assert "luthier tools diff lute" in caught.value.hint
        assert await tune.execute() == "a string"
        del server.tools["tune"]
        with pytest.raises(NotFoundError):
            await tune.execute()
        await rt.pins.approve(await rt.review_tools("lute"), by="ada")
        assert await play.execute() == "a note"
    assert [name for name, _ in server.calls] == ["play", "tune", "play"]


PINNING = """
import asyncio, sys
from pathlib import Path
from luthier import Refused, Runtime
from luthier.testing import MemoryServer

async def main(root, said):
    server = MemoryServer("lute", {"play": said}, descriptions={"play": said})
    entry = {"command": "python", "args": ["none.py"]}
    async with Runtime.open({"mcpServers": {"lute": entry}, "store": "sqlite:///kept.db"}, root=root,
                            transports={"lute": server.transport}) as rt:
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            print((await rt.call("mcp://lute/play")).content)
        except Refused as refused:
            print(refused.rule)
        print(next(iter(rt.state.get("pins", "lute").values()))["definition"]["description"])

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def pinning_at_once(root: Path, *said: str) -> list[list[str]]:
    """What processes print that use a server for the first time at once, each with another description."""
    with ExitStack() as stack:
        all_ = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PINNING, str(root), one],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for one in said
        ]
        for one in all_:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in all_:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        return [one.communicate(timeout=50)[0].split() for one in all_]


@pytest.mark.parametrize("turn", range(4))
def test_of_processes_that_pin_different_definitions_at_once_one_wins(tmp_path: Path, turn: int) -> None:
    said = ("one", "other") if turn % 2 else ("other", "one")
    answers = pinning_at_once(tmp_path, *said)
    pinned = answers[0][1]
    assert [answer[1] for answer in answers] == [pinned, pinned]
    assert [answer[0] for answer in answers] == [one if one == pinned else "pins" for one in said]
    logs = "".join(file.read_text() for file in (tmp_path / ".luthier" / "audit").iterdir())
    assert logs.count('"kind":"pinned"') == 1
