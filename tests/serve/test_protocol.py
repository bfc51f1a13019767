"""The service as the official SDK's client sees it, in both eras of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from luthier import tool
from luthier.errors import LuthierError
from luthier.serve import Service
from luthier.serve.answer import LABEL
from luthier.serve.protocol import need_sdk
from luthier.testing import MemoryAudit
from tests.serve.house import SECRET, caller, given_up, greeter, house

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])


def test_without_the_sdk_the_error_says_what_to_install() -> None:
    need_sdk()
    with pytest.raises(LuthierError, match=r"luthier\[serve\]"):
        need_sdk(lambda _: None)


async def names(peer: Client) -> list[str]:
    return [tool.name for tool in (await peer.list_tools()).tools]


@BOTH
async def test_ensembles_with_a_trigger_are_listed_with_their_schemas(tmp_path: Path, mode: str) -> None:
    async with caller(tmp_path, mode=mode) as (peer, _):
        listed = (await peer.list_tools()).tools
    assert [tool.name for tool in listed] == ["greeting", "stuck", "telling"]
    assert listed[0].description == "Greets."
    assert listed[0].input_schema["required"] == ["name"]
    assert listed[0].output_schema == {"type": "object", "required": ["said"]}


@BOTH
async def test_a_call_runs_the_ensemble_and_tells_of_each_step(tmp_path: Path, mode: str) -> None:
    told = []

    async def notice(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with caller(tmp_path, mode=mode) as (peer, _):
        result = await peer.call_tool("greeting", {"name": "Ada"}, progress_callback=notice)
    assert result.structured_content == {"said": "Hello, Ada"}
    assert not result.is_error
    assert told == [(1, 2, "step greet: ok"), (2, 2, "step again: ok")]
    assert result.meta is not None
    assert result.meta[LABEL]["confidentiality"] == "private"
    assert result.meta[LABEL]["sources"] == ["greeter:greet"]


async def test_a_client_is_the_principal_of_what_its_runs_call(tmp_path: Path) -> None:
    audit = MemoryAudit()
    async with caller(tmp_path, audit=audit) as (peer, _):
        await peer.call_tool("greeting", {"name": "Ada"})
    assert '"client:ci"' in str(audit.records).replace("'", '"')


async def test_what_a_client_sends_is_neither_trusted_nor_public(tmp_path: Path) -> None:
    seen = []

    def check(call: Any) -> None:
        seen.append(call.label)

    async with caller(tmp_path, policies=[check]) as (peer, _):
        await peer.call_tool("greeting", {"name": "Ada"})
    assert {(label.integrity.name, label.confidentiality.name) for label in seen} == {
        ("untrusted", "private")
    }


async def test_what_a_client_may_not_use_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    async with caller(tmp_path, client="boss") as (peer, _):
        assert "hidden" in await names(peer)
    said = []
    async with caller(tmp_path) as (peer, _):
        for name in ("hidden", "absent", "unserved"):
            with pytest.raises(MCPError) as caught:
                await peer.call_tool(name, {"name": "x"})
            said.append((caught.value.code, caught.value.message.replace(name, "")))
    assert said == [(-32602, "Unknown tool: ")] * 3


async def test_a_server_that_lists_only_others_is_closed_to_the_runs_of_a_client(tmp_path: Path) -> None:
    entry = {"allowed_agents": ["ensemble:greeting"]}
    async with caller(tmp_path, entry=entry) as (peer, _):
        result = await peer.call_tool("greeting", {"name": "Ada"})
    assert result.is_error
    assert result.content[0].text == "Execution failed at step greet [denied]"  # type: ignore[union-attr]
    entry = {"allowed_agents": ["ensemble:greeting", "client:ci"]}
    async with caller(tmp_path, entry=entry) as (peer, _):
        assert not (await peer.call_tool("greeting", {"name": "Ada"})).is_error


async def test_a_secret_is_withheld(tmp_path: Path) -> None:
    async with caller(tmp_path) as (peer, _):
        result = await peer.call_tool("telling")
    assert result.is_error
    assert SECRET not in result.model_dump_json()


async def test_bad_input_starts_nothing_and_says_all_that_is_wrong(tmp_path: Path) -> None:
    server = greeter()
    async with caller(tmp_path, server=server) as (peer, _):
        result = await peer.call_tool("greeting", {"name": 1})
    assert (result.is_error, server.connections) == (True, 0)
    assert "must be text" in result.content[0].text  # type: ignore[union-attr]


@BOTH
async def test_a_call_that_its_client_gives_up_is_called_off(tmp_path: Path, mode: str) -> None:
    async with caller(tmp_path, mode=mode) as (peer, service):
        await given_up(peer)
        await service.idle()  # the call would never end by itself


async def test_closing_calls_off_what_is_being_done(tmp_path: Path) -> None:
    async with house(tmp_path) as runtime:
        service = Service(runtime)
        task = await service.begin("ci", "stuck", {}, lambda _: None)
        await service.close()
        assert task.cancelled()


CHOSEN: dict[str, Any] = {"serve": {"tools": {"hi": "mcp://greeter/greet", "shout": "custom://loud"}}}


def loud(text: str) -> str:
    """Says it louder."""
    return text.upper()


async def test_chosen_tools_are_offered_under_names_of_their_own(tmp_path: Path) -> None:
    async with caller(tmp_path, tools=[tool(loud)], **CHOSEN) as (peer, _):
        assert {"hi", "shout"} <= set(await names(peer))
        result = await peer.call_tool("hi", {"name": "Bo"})
        shouted = await peer.call_tool("shout", {"text": "oh"})
        wrong = await peer.call_tool("hi", {"name": 1})
    assert result.content[0].text == "Hello, Bo"  # type: ignore[union-attr]
    assert shouted.content[0].text == "OH"  # type: ignore[union-attr]
    assert wrong.is_error


@BOTH
async def test_what_a_server_reports_of_a_chosen_tool_is_passed_on(tmp_path: Path, mode: str) -> None:
    told = []

    async def notice(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with caller(tmp_path, mode=mode, serve={"tools": {"slow": "mcp://greeter/slow"}}) as (peer, _):
        result = await peer.call_tool("slow", progress_callback=notice)
    assert result.content[0].text == "done"  # type: ignore[union-attr]
    assert [done for done, _ in told] == [1, 2, 3]


async def test_a_pattern_offers_what_the_client_may_use(tmp_path: Path) -> None:
    serve = {"tools": ["mcp://greeter/*", "mcp://nobody/*"]}
    entry = {"allowed_agents": ["client:boss"]}
    async with caller(tmp_path, serve=serve, entry=entry) as (peer, _):
        assert await names(peer) == ["greeting", "stuck", "telling"]
    async with caller(tmp_path, client="boss", serve=serve, entry=entry) as (peer, _):
        assert "greeter__fail" in await names(peer)
        failed = await peer.call_tool("greeter__fail")
        odd = await peer.call_tool("greeter__odd")
    assert (failed.is_error, failed.content[0].text) == (True, "no")  # type: ignore[union-attr]
    assert "roses" in odd.content[0].text  # type: ignore[union-attr]


async def test_a_token_of_a_trigger_opens_no_tools(tmp_path: Path) -> None:
    async with caller(tmp_path, client="trigger/x", tools=[tool(loud)], **CHOSEN) as (peer, _):
        assert await names(peer) == []


async def test_an_ensemble_with_faults_costs_itself_only(tmp_path: Path) -> None:
    (tmp_path / "ensembles").mkdir()
    (tmp_path / "ensembles" / "bad.yaml").write_text("trigger: {type: mcp}\n")
    async with caller(tmp_path) as (peer, service):
        assert list(service.broken) == ["bad"]
        assert "greeting" in await names(peer)
