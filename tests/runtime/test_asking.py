"""What a runtime asks of whoever opened it: answers for its servers, and a login of a person."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Handlers, Runtime
from luthier.clock import FakeClock
from luthier.errors import ConnectError, LoginNeededError
from luthier.testing import MemoryServer
from luthier.wire import Result
from tests.wire.auth.authority import Authority, running
from tests.wire.auth.browser import Browser
from tests.wire.http.support import Answering, Asked, Site, bounded, modern, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOGIN = {"type": "oauth", "interactive": True}


@asynccontextmanager
async def guarded() -> AsyncIterator[tuple[Site, Authority]]:
    """An MCP server that lets in only who has logged in at an authorization server."""
    async with running() as authority:

        def answer(asked: Asked, out: Answering) -> None:
            place = f"http://127.0.0.1:{site.port}/.well-known/oauth-protected-resource/mcp"
            if asked.path.endswith("/.well-known/oauth-protected-resource/mcp"):
                out.give(body={"resource": site.url, "authorization_servers": [authority.issuer]})
            elif asked.headers.get("authorization", "").removeprefix("Bearer ") in authority.live:
                modern(asked, out)
            else:
                out.give(401, www_authenticate=f'Bearer resource_metadata="{place}"')

        async with Site(answer) as site:
            yield site, authority


def opened(site: Site, root: Path, entry: dict[str, Any] | None = None, **parts: Any) -> Runtime:
    lute = {"url": site.url, "auth": LOGIN, "allow_private": True, "max_retries": 0, **(entry or {})}
    return Runtime.open({"mcpServers": {"lute": lute}}, root=root, **parts)


async def test_what_a_server_asks_back_is_answered_by_the_handlers_given(tmp_path: Path) -> None:
    async def person(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": params["message"]}}

    def greet(_: dict[str, Any]) -> Any:
        if "inputResponses" in server.received[-1]["params"]:
            return server.received[-1]["params"]["inputResponses"]["who"]["content"]["name"]
        request = {"method": "elicitation/create", "params": {"message": "Ada"}}
        return Result({"resultType": "input_required", "inputRequests": {"who": request}})

    server = MemoryServer("lute", {"greet": greet})
    async with Runtime.open(
        {"mcpServers": {"lute": {"command": "python", "args": ["none.py"]}}},
        root=tmp_path,
        transports={"lute": server.transport},
        handlers=Handlers(elicitation=person),
    ) as rt:
        assert (await bounded(rt.call("mcp://lute/greet"))).content == "Ada"


async def test_a_login_is_shown_and_the_call_goes_through_once_somebody_has_logged_in(tmp_path: Path) -> None:
    browser = Browser()
    async with guarded() as (site, authority):
        async with opened(site, tmp_path, show=browser) as rt:
            assert (await bounded(rt.call("mcp://lute/echo", text="in"))).content == "in"
        assert browser.opened[0].startswith(f"{authority.issuer}/authorize?")
        async with opened(site, tmp_path) as rt:  # the tokens were kept
            assert (await bounded(rt.call("mcp://lute/echo", text="again"))).content == "again"
    assert len(browser.opened) == 1


async def test_a_login_may_take_longer_than_a_server_may_take_to_answer(tmp_path: Path) -> None:
    browser = Browser()
    browser.absent = True
    clock = FakeClock()
    async with guarded() as (site, _), opened(site, tmp_path, show=browser, clock=clock) as rt:
        calling = asyncio.create_task(rt.call("mcp://lute/echo", text="in"))
        await until(lambda: browser.opened)
        await clock.advance(200.0)
        assert not calling.done()
        browser.absent = False
        await browser(browser.opened[0])
        assert (await bounded(calling)).content == "in"


async def test_callers_with_connections_of_their_own_share_one_login(tmp_path: Path) -> None:
    browser = Browser()
    async with guarded() as (site, _):
        async with opened(site, tmp_path, {"share": False}, show=browser) as rt:
            ensemble = {
                "ensemble": "pair",
                "agents": [{"name": "a", "operation": "tools", "config": {"mcp": "lute", "tool": "echo"}}],
            }
            run, result = await bounded(
                asyncio.gather(rt.run(ensemble), rt.call("mcp://lute/echo", text="me"))
            )
            assert (run.success, result.content) == (True, "me")
    assert len(browser.opened) == 1


async def test_without_somebody_to_show_it_to_the_error_says_what_to_run(tmp_path: Path) -> None:
    async with guarded() as (site, _), opened(site, tmp_path) as rt:
        with pytest.raises(LoginNeededError, match="luthier servers login lute"):
            await bounded(rt.call("mcp://lute/echo"))


async def test_a_login_that_nobody_makes_ends_with_the_runtime(tmp_path: Path) -> None:
    browser = Browser()
    browser.absent = True
    before = asyncio.all_tasks()
    async with guarded() as (site, _):
        async with opened(site, tmp_path, show=browser) as rt:
            calling = asyncio.create_task(rt.call("mcp://lute/echo"))
            await until(lambda: browser.opened)
        with pytest.raises(ConnectError, match="was closed"):
            await bounded(calling)
        await until(lambda: not [task for task in asyncio.all_tasks() - before if "_danced" in repr(task)])
