"""Who is told of changes: those who listen since 2026-07-28, and sessions of the kind before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    EmptyResult,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from luthier.clock import FakeClock
from luthier.serve.watching import EVERY, MOST_WATCHED
from tests.serve.house import caller, greeter

if TYPE_CHECKING:
    from pathlib import Path

SERVE: dict[str, Any] = {
    "prompts": "prompts",
    "resources": [
        {"uri": "docs://one", "file": "one.txt"},
        {"uri": "docs://two", "file": "two.txt"},
        {"uri": "docs://boss", "file": "boss.txt", "clients": ["boss"]},
        {"uri": "many://{n}", "file": "many/{n}.txt"},
    ],
}
MORE = "trigger: {type: mcp}\nagents: [{name: a, operation: transform, config: {value: 1}}]\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("prompts", "ensembles", "many"):
        (tmp_path / folder).mkdir()
    for name in ("one", "two", "boss"):
        (tmp_path / f"{name}.txt").write_text(name)
    return tmp_path


def tool_added(root: Path) -> None:
    (root / "ensembles" / "more.yaml").write_text(MORE)


def prompt_added(root: Path) -> None:
    (root / "prompts" / "more.yaml").write_text("text: More.\n")


def file_written(root: Path) -> None:
    (root / "one.txt").write_text("something else")


def file_gone(root: Path) -> None:
    (root / "one.txt").unlink()


CHANGES = [
    (tool_added, ToolsListChanged()),
    (prompt_added, PromptsListChanged()),
    (file_written, ResourceUpdated(uri="docs://one")),
    (file_gone, ResourceUpdated(uri="docs://one")),
]


@pytest.mark.parametrize(("change", "event"), CHANGES)
async def test_whoever_listens_hears_of_a_change(root: Path, change: Any, event: Any) -> None:
    clock = FakeClock()
    async with caller(root, serve=SERVE, clock=clock) as (peer, _):
        wanted: dict[str, Any] = {"resource_subscriptions": ["docs://one"], "prompts_list_changed": True}
        async with peer.listen(tools_list_changed=True, **wanted) as events:
            await clock.advance(EVERY)
            change(root)
            await clock.advance(EVERY)
            assert await anext(aiter(events)) == event


async def test_whoever_did_not_ask_hears_of_nothing_else(root: Path) -> None:
    clock = FakeClock()
    async with caller(root, serve=SERVE, clock=clock) as (peer, _):
        async with peer.listen(resource_subscriptions=["docs://two"], prompts_list_changed=True) as events:
            for change in (tool_added, file_written, prompt_added):
                change(root)
                await clock.advance(EVERY)
            assert await anext(aiter(events)) == PromptsListChanged()


async def test_what_a_server_says_of_its_tools_is_passed_on(root: Path) -> None:
    clock, server = FakeClock(), greeter()
    serve = {**SERVE, "tools": ["mcp://greeter/*"]}
    async with caller(root, serve=serve, server=server, clock=clock) as (peer, _):
        await peer.list_tools()
        async with peer.listen(tools_list_changed=True) as events:
            server.notify("notifications/tools/list_changed")
            heard = asyncio.create_task(anext(aiter(events)))
            while not heard.done():  # it comes by a session with a server, of which no clock knows
                await clock.advance(EVERY)
        assert heard.result() == ToolsListChanged()


async def test_nobody_looks_where_nobody_listens(root: Path) -> None:
    clock = FakeClock()
    async with caller(root, serve=SERVE, clock=clock) as (peer, _):
        async with peer.listen(tools_list_changed=True):
            assert clock.waiting == 1
        await peer.list_tools()
        assert clock.waiting == 0


async def test_what_a_client_may_not_read_it_does_not_hear_of(root: Path) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        async with peer.listen(resource_subscriptions=["docs://boss", "docs://one"]) as events:
            honored = events.honored
    assert honored.resource_subscriptions == ["docs://one"]


async def test_ensembles_that_have_changed_are_called_as_they_are(root: Path) -> None:
    async with caller(root, serve=SERVE) as (peer, service):
        tool_added(root)
        assert "more" in [tool.name for tool in (await peer.list_tools()).tools]
        assert (await peer.call_tool("more")).content[0].text == "1"  # type: ignore[union-attr]
        (root / "ensembles" / "more.yaml").write_text("nonsense: 1\n")
        assert "more" not in [tool.name for tool in (await peer.list_tools()).tools]
        assert list(service.broken) == ["more"]


async def test_two_of_one_name_change_nothing(root: Path) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        (root / "ensembles" / "twin.yaml").write_text(MORE.replace("mcp", "mcp, name: greeting"))
        assert "greeting" in [tool.name for tool in (await peer.list_tools()).tools]
        assert not (await peer.call_tool("greeting", {"name": "Ada"})).is_error


async def watch(peer: Any, uri: str, *, off: bool = False) -> None:
    """Ask as clients before 2026-07-28 do; the SDK's own way warns that it is of the past."""
    params = SubscribeRequestParams(uri=uri)
    asked = (
        UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
        if off
        else SubscribeRequest(params=params)
    )
    await peer.session.send_request(asked, EmptyResult)


class Heard:
    """What an old session is told by itself."""

    def __init__(self) -> None:
        self.notes: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        self.notes.put_nowait(message)

    async def next(self) -> tuple[str, str]:
        note = await self.notes.get()
        uri = getattr(note.params, "uri", "") if note.params is not None else ""
        return note.method, str(uri)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (tool_added, ("notifications/tools/list_changed", "")),
        (prompt_added, ("notifications/prompts/list_changed", "")),
        (file_written, ("notifications/resources/updated", "docs://one")),
    ],
)
async def test_an_old_session_is_told_by_itself(root: Path, change: Any, told: Any) -> None:
    clock, heard = FakeClock(), Heard()
    async with caller(root, mode="legacy", serve=SERVE, clock=clock, message_handler=heard) as (peer, _):
        await watch(peer, "docs://one")
        await watch(peer, "docs://one")
        await clock.advance(EVERY)
        change(root)
        await clock.advance(EVERY)
        assert await heard.next() == told


async def test_an_old_session_hears_of_no_file_that_it_does_not_watch(root: Path) -> None:
    clock, heard = FakeClock(), Heard()
    async with caller(root, mode="legacy", serve=SERVE, clock=clock, message_handler=heard) as (peer, _):
        await watch(peer, "docs://one")
        await watch(peer, "docs://two")
        await watch(peer, "docs://one", off=True)
        await watch(peer, "docs://never", off=True)
        file_written(root)
        await clock.advance(EVERY)
        (root / "two.txt").write_text("changed too")
        await clock.advance(EVERY)
        assert await heard.next() == ("notifications/resources/updated", "docs://two")
    assert clock.waiting == 0


@pytest.mark.parametrize("uri", ["docs://boss", "docs://none"])
async def test_what_is_not_there_cannot_be_watched(root: Path, uri: str) -> None:
    async with caller(root, mode="legacy", serve=SERVE) as (peer, _):
        with pytest.raises(MCPError, match="Resource not found"):
            await watch(peer, uri)


async def test_a_session_watches_only_so_many(root: Path) -> None:
    for number in range(MOST_WATCHED + 1):
        (root / "many" / f"{number}.txt").touch()
    async with caller(root, mode="legacy", serve=SERVE, clock=FakeClock()) as (peer, _):
        for number in range(MOST_WATCHED):
            await watch(peer, f"many://{number}")
        with pytest.raises(MCPError, match="No more than"):
            await watch(peer, f"many://{MOST_WATCHED}")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_changes_is_promised(root: Path, mode: str) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        can = peer.server_capabilities
    assert can.tools is not None
    assert can.tools.list_changed
    assert can.resources is not None
    assert can.resources.subscribe
