"""Ensembles as people write them, played through the real gate to servers in memory, in both eras."""

from __future__ import annotations

import asyncio
import textwrap
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import settle
from luthier.connect import ConnectionManager, ServerRegistry
from luthier.govern import Gateway, MemoryAudit
from luthier.spec import Project, ServerEntry, ToolFilter, read_ensemble
from luthier.taint import TRUSTED, Integrity, Labelled
from luthier.wire import MemoryServer
from luthier.wire.behaviour import Delay, Drop, Hang, Progress
from luthier.workflows import Run, Services, run_ensemble
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ISSUES = [{"number": number, "title": f"issue {number}"} for number in range(1, 4)]


def schema(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "additionalProperties": False,
    }


class Hall:
    """A forge, a search and an archive, each a server in memory, behind one gate."""

    def __init__(self, era: str, root: Path, **entries: dict[str, Any]) -> None:
        self.root = root
        (root / "scripts").mkdir()
        self.forge = MemoryServer(
            "forge",
            {
                "get_change": lambda arguments: {"number": arguments["number"], "title": "Mend it"},
                "list_issues": ISSUES,
                "write_note": {"written": True},
                "hang": Hang(),
            },
            era=era,
            schemas={
                "get_change": schema(owner="string", number="integer"),
                "list_issues": schema(owner="string"),
                "write_note": schema(text="string"),
            },
        )
        self.search = MemoryServer("search", {"find": ["found"], "flaky": ValueError("no luck")}, era=era)
        self.archive = MemoryServer("archive", {"find": ["old"]}, era=era)
        servers = {server.server_id: server for server in (self.forge, self.search, self.archive)}
        self.project = Project(
            root=root,
            servers={id: ServerEntry(id=id, command="python", **entries.get(id, {})) for id in servers},
        )
        registry = ServerRegistry.of(self.project)
        self.audit = MemoryAudit()
        self.manager = ConnectionManager(
            registry, environ={}, transports={id: server.transport for id, server in servers.items()}
        )
        gateway = Gateway(manager=self.manager, registry=registry, audit=self.audit)
        self.services = Services(gateway=gateway, project=self.project)

    def script(self, name: str, text: str) -> None:
        (self.root / "scripts" / name).write_text(textwrap.dedent(text))

    async def run(self, text: str, inputs: Any = None) -> Run:
        ensemble = read_ensemble(textwrap.dedent(text), file="test.yaml")
        given = inputs if isinstance(inputs, Labelled) else Labelled(inputs or {})
        async with asyncio.timeout(LONG):
            return await run_ensemble(ensemble, given, services=self.services)


@asynccontextmanager
async def opened(hall: Hall) -> AsyncIterator[Hall]:
    try:
        yield hall
    finally:
        async with asyncio.timeout(LONG):
            await hall.manager.close_all()


@pytest.fixture(params=["modern", "2025-06-18"])
async def hall(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Hall]:
    async with opened(Hall(request.param, tmp_path)) as one:
        yield one


async def test_one_call_with_the_inputs_that_its_schema_names(hall: Hall) -> None:
    run = await hall.run(
        """
        ensemble: change
        agents:
          - name: get-change
            operation: tools
            config:
              mcp: forge
              tool: get_change
              timeout: 10000
        inputs:
          owner: luthiers
          number: 7
          unrelated: kept to ourselves
        outputs:
          change: ${get-change.output}
          title: ${get-change.output.title}
          by: ${get-change.output.server}/${get-change.output.tool}
        """
    )
    assert run.output == {
        "change": {"number": 7, "title": "Mend it"},
        "title": "Mend it",
        "by": "forge/get_change",
    }
    assert hall.forge.calls == [("get_change", {"owner": "luthiers", "number": 7})]
    assert run.label.integrity is Integrity.untrusted
    assert {source.server for source in run.label.sources} == {"forge"}


@pytest.mark.parametrize(("more", "lists"), [("", 5), (", cacheDiscovery: true, cacheTTL: 60", 1)])
async def test_a_step_may_keep_the_list_of_its_server_where_the_entry_keeps_none(
    more: str, lists: int, tmp_path: Path
) -> None:
    async with opened(Hall("2025-06-18", tmp_path, forge={"cache_ttl": 0.0})) as hall:
        run = await hall.run(
            f"""
            ensemble: issues
            agents:
              - {{name: list, operation: tools, config: {{mcp: forge, tool: list_issues{more}}}}}
            flow:
              - foreach: {{items: [1, 2, 3, 4, 5], step: list, maxConcurrency: 1}}
            inputs: {{owner: luthiers}}
            """
        )
        assert run.success, run.error
        asked = [message["method"] for message in hall.forge.received].count("tools/list")
        assert (asked == lists) if more else (asked >= lists)


async def test_two_calls_one_after_the_other_and_a_count(hall: Hall) -> None:
    run = await hall.run(
        """
        ensemble: analysis
        agents:
          - {name: issues, operation: tools, config: {mcp: forge, tool: list_issues}}
          - name: change
            operation: tools
            config: {mcp: forge, tool: get_change}
            input: {owner: "${input.owner}", number: "${issues.output[0].number}"}
        inputs: {owner: luthiers}
        outputs:
          count: ${issues.output.length}
          change: ${change.output.number}
        """
    )
    assert run.output == {"count": 3, "change": 1}


async def test_two_searches_side_by_side(hall: Hall) -> None:
    together = asyncio.Barrier(2)

    async def meet(_: Any) -> list[str]:
        await together.wait()
        return ["met"]

    hall.search.tools["find"] = hall.archive.tools["find"] = meet
    run = await hall.run(
        """
        ensemble: searches
        agents:
          - {name: here, operation: tools, config: {mcp: search, tool: find}}
          - {name: there, operation: tools, config: {mcp: archive, tool: find}}
        inputs: {question: where}
        outputs:
          sources: {here: "${here.output}", there: "${there.output}"}
        """
    )
    assert run.output == {"sources": {"here": ["met"], "there": ["met"]}}
    assert hall.search.calls == [("find", {"question": "where"})]


FALLBACK = """
ensemble: fallback
agents:
  - name: first
    operation: tools
    config: {mcp: search, tool: find, timeout: TIMEOUT}
    input: {q: "${input.query}"}
  - name: second
    condition: ${first.failed}
    operation: tools
    config: {mcp: archive, tool: find}
    input: {q: "${input.query}"}
inputs: {query: strings}
outputs:
  results: ${first.output || second.output}
  source: ${first.executed ? 'new' : 'old'}
  fine: ${first.success}
  why: ${first.error.kind}
"""


async def test_the_first_search_is_enough(hall: Hall) -> None:
    run = await hall.run(FALLBACK.replace("TIMEOUT", "10000"))
    assert run.output == {"results": ["found"], "source": "new", "fine": True, "why": None}
    assert hall.archive.calls == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(Hang(), "timeout"), (Drop(), "unknown"), (Delay(20.0, "too late"), "timeout")],
    ids=["silent", "dying", "slow"],
)
async def test_the_second_search_takes_over(hall: Hall, answer: Any, kind: str) -> None:
    hall.search.tools["find"] = answer
    run = await hall.run(FALLBACK.replace("TIMEOUT", "200"))
    assert run.success
    assert run.output == {"results": ["old"], "source": "old", "fine": False, "why": kind}


async def test_a_server_that_cannot_be_reached_is_a_failure_like_any_other(hall: Hall) -> None:
    hall.search.refusal = "it is not there"
    run = await hall.run(FALLBACK.replace("TIMEOUT", "500"))
    assert run.output["results"] == ["old"]
    assert run.output["why"] in ("connect", "timeout")


async def test_an_error_of_the_tool_is_read_by_a_script(hall: Hall) -> None:
    hall.script(
        "check-result.py",
        """
        def check_result(context):
            result = context.input["tool_output"]
            if result.isError:
                raise RuntimeError("The tool said: " + result.content)
            return result.content
        """,
    )
    text = """
        ensemble: checked
        agents:
          - {name: call-tool, operation: tools, config: {mcp: search, tool: TOOL}}
          - name: check-result
            operation: code
            config: {script: scripts/check-result}
            input: {tool_output: "${call-tool.output}"}
        outputs: {result: "${check-result.output}"}
        """
    assert (await hall.run(text.replace("TOOL", "find"))).output == {"result": ["found"]}
    run = await hall.run(text.replace("TOOL", "flaky"))
    assert run.steps["call-tool"].success
    assert run.error is not None
    assert run.error["message"] == "RuntimeError: The tool said: no luck (scripts/check-result.py:5)"
    assert run.error["step"] == "check-result"


async def test_a_script_stands_in_for_a_failed_tool(hall: Hall) -> None:
    hall.script(
        "stand-in.py", "def default(context): return {'fallback': True, 'failed': context.input['failed']}"
    )
    hall.search.tools["flaky"] = Drop()
    run = await hall.run(
        """
        ensemble: handled
        agents:
          - {name: risky, operation: tools, config: {mcp: search, tool: flaky}}
          - name: handle
            condition: ${risky.failed}
            operation: code
            config: {script: scripts/stand-in}
            input: {failed: "${risky.failed}"}
        outputs:
          result: ${risky.output || handle.output}
          success: ${risky.success}
        """
    )
    assert run.output == {"result": {"fallback": True, "failed": True}, "success": False}


async def test_the_timeout_of_a_step_is_not_extended_by_progress(hall: Hall) -> None:
    hall.search.tools["find"] = Progress(1000, 0.02, ["late"])
    run = await hall.run(
        """
        ensemble: t
        agents:
          - {name: a, operation: tools, timeout: 300, config: {mcp: search, tool: find}}
        """
    )
    assert run.error is not None
    assert run.error["kind"] == "timeout"
    assert run.duration < 5000


async def test_arguments_that_break_the_schema_are_refused_before_they_are_sent(hall: Hall) -> None:
    run = await hall.run(
        """
        ensemble: t
        agents:
          - {name: a, operation: tools, config: {mcp: forge, tool: get_change}, input: {number: many}}
        """
    )
    assert run.error is not None
    assert run.error["kind"] == "arguments"
    assert "/number" in run.error["message"]
    assert hall.forge.calls == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{mcp: forge, tool: get_chang}", "get_change"),
        ("{mcp: forg, tool: get_change}", "forge"),
    ],
)
async def test_unknown_names_are_told_with_the_nearest(hall: Hall, config: str, message: str) -> None:
    run = await hall.run(
        f"ensemble: t\nagents: [{{name: a, operation: tools, input: {{}}, config: {config}}}]\n"
    )
    assert run.error is not None
    assert message in run.error["message"]


async def test_a_caller_who_is_not_listed_is_refused(tmp_path: Path) -> None:
    entries: dict[str, Any] = {"search": {"allowed_agents": ("somebody", "ensemble:listed", "operator")}}
    text = "ensemble: NAME\nagents: [{name: a, operation: tools, config: {mcp: search, tool: find}}]\n"
    async with opened(Hall("modern", tmp_path, **entries)) as hall:
        assert (await hall.run(text.replace("NAME", "listed"))).success
        run = await hall.run(text.replace("NAME", "stranger"))
    assert run.refused
    assert hall.search.calls == [("find", {})]


async def test_a_call_that_was_lost_is_sent_again_only_by_the_operator_s_word(tmp_path: Path) -> None:
    text = """
        ensemble: t
        agents:
          - name: a
            operation: tools
            config: {mcp: search, tool: find}
            input: {}
            retry: {maxAttempts: 3, backoff: fixed, initialDelay: 10}
        """
    (tmp_path / "a").mkdir()
    async with opened(Hall("modern", tmp_path / "a")) as hall:
        hall.search.tools["find"] = Drop()
        run = await hall.run(text)
        assert run.error is not None
        assert run.error["kind"] == "unknown"
        assert len(hall.search.calls) == 1
    (tmp_path / "b").mkdir()
    tools = ToolFilter(read_only=("find",))
    async with opened(Hall("modern", tmp_path / "b", search={"tools": tools})) as hall:
        hall.search.tools["find"] = Drop()
        run = await hall.run(text)
        assert run.steps["a"].attempts == len(hall.search.calls) == 3


async def test_what_a_trusted_server_says_is_trusted(tmp_path: Path) -> None:
    async with opened(Hall("modern", tmp_path, search={"trust": TRUSTED})) as hall:
        run = await hall.run(
            "ensemble: t\nagents: [{name: a, operation: tools, config: {mcp: search, tool: find}}]\n"
        )
    assert run.label.integrity is Integrity.trusted
    assert [source.server for source in run.label.sources] == ["search"]


async def test_a_hundred_calls_at_once(hall: Hall) -> None:
    steps = "".join(
        f"  - {{name: a{number}, operation: tools, config: {{mcp: forge, tool: get_change}}, "
        f"input: {{number: {number}}}}}\n"
        for number in range(100)
    )
    run = await hall.run(f"ensemble: t\nagents:\n{steps}outputs: {{last: '${{a99.output.number}}'}}\n")
    assert run.output == {"last": 99}
    assert sorted(arguments["number"] for _, arguments in hall.forge.calls) == list(range(100))


async def test_a_parallel_race_cancels_the_call_that_lost(hall: Hall) -> None:
    hall.archive.tools["find"] = Hang()
    run = await hall.run(
        """
        ensemble: race
        agents:
          - {name: slow, operation: tools, config: {mcp: archive, tool: find}, input: {}}
          - {name: quick, operation: tools, config: {mcp: search, tool: find}, input: {}}
        flow:
          - type: parallel
            waitFor: first
            steps: [{agent: slow}, {agent: quick}]
        outputs: {first: "${parallel_0.output[0]}"}
        """
    )
    assert run.output == {"first": ["found"]}
    await settle(100)
    assert hall.archive.cancelled


async def test_the_audit_tells_which_run_and_step_each_call_was_for(hall: Hall) -> None:
    run = await hall.run(
        "ensemble: t\nagents: [{name: a, operation: tools, config: {mcp: search, tool: find}}]\n"
    )
    told = repr(hall.audit.records)
    assert run.id in told
    assert "ensemble:t" in told
