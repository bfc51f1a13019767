"""Runs by the HTTP API: waited for, begun, told of as they go, listed, cancelled; and whose they are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from luthier.events import CallStarted, StepBegan
from luthier.testing import FaultyRuns
from luthier.workflows import MemoryRuns
from tests.serve.house import ENSEMBLES, GREETING, SECRET, greeter
from tests.serve.test_http import BOSS, CI, asked, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from luthier.events import Event
    from luthier.serve import Service

API = "/api/v1"
ROOT = {"ci": "${env.CI}", "boss": {"token": "${env.BOSS}", "roles": ["admin"]}}
ONLY_API: dict[str, Any] = {**GREETING, "ensemble": "only-api", "trigger": {"type": "api", "clients": ["ci"]}}
EVERYBODYS: dict[str, Any] = {**GREETING, "ensemble": "everybodys", "trigger": {"type": "api"}}
BLOCKS: dict[str, Any] = {
    "ensemble": "blocks",
    "trigger": {"type": "api"},
    "agents": [{"name": "a", "operation": "transform", "config": {"value": 1}}],
    "outputs": [{"status": 418, "headers": {"X-Pot": "tea"}, "body": {"brewed": "${a.output}"}}],
}
FAILING: dict[str, Any] = {
    "ensemble": "failing",
    "trigger": {"type": "api"},
    "agents": [{"name": "no", "operation": "transform", "condition": "${input.n}", "config": {"value": 1}}],
}
OUTER: dict[str, Any] = {
    "ensemble": "outer",
    "trigger": {"type": "api"},
    "agents": [{"name": "a", "operation": "ensemble", "config": {"ensemble": "blocks"}}],
}
ALL = [*ENSEMBLES, ONLY_API, EVERYBODYS, BLOCKS, FAILING]


class Reached:
    """Tells that a step has begun, or with `CallStarted` that its call has."""

    def __init__(self, step: str, kind: type[StepBegan | CallStarted] = StepBegan) -> None:
        self._step = step
        self._kind = kind
        self.reached = asyncio.Event()

    def notify(self, event: Event) -> None:
        if isinstance(event, self._kind) and event.step == self._step:
            self.reached.set()


def run(url: str, name: str, body: Any = None, token: str = CI, **more: Any) -> Any:
    given = {} if body is None else {"json": body}
    return asked(f"{url}{API}/ensembles/{name}/run", "POST", token, **given, **more)


async def begun(url: str, name: str, token: str = CI) -> str:
    """The id of a run that goes on by itself."""
    status, body, headers = await run(url, name, {}, token, headers={"Prefer": "respond-async"})
    assert status == 202
    assert headers["Location"] == f"{API}/runs/{body['id']}"
    return str(body["id"])


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in response.content:
        word, _, rest = line.decode().rstrip("\n").partition(": ")
        if word == "event":
            name = rest
        elif word == "data":
            yield name, msgspec.json.decode(rest)


async def test_what_a_client_may_run_is_what_triggers_say(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=ALL) as url:
        _, body, _ = await asked(f"{url}{API}/ensembles")
        _, more, _ = await asked(f"{url}{API}/ensembles", token=BOSS)
        _, one, _ = await asked(f"{url}{API}/ensembles/greeting")
        for name in ("hidden", "unserved", "absent"):
            status, found, _ = await asked(f"{url}{API}/ensembles/{name}")
            assert (status, found["message"]) == (404, f"There is no ensemble {name!r}.")
            assert (await run(url, name, {}))[:2] == (status, found)
    names = [one["name"] for one in body["ensembles"]]
    assert names == ["blocks", "everybodys", "failing", "greeting", "only-api", "stuck", "telling"]
    assert {one["name"] for one in more["ensembles"]} == {*names, "hidden"} - {"only-api"}
    assert one["description"] == "Greets."
    assert one["input_schema"]["required"] == ["name"]


@pytest.mark.parametrize("word", ["inputs", "input"])
async def test_a_run_is_waited_for(tmp_path: Path, word: str) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await run(url, "greeting", {word: {"name": "Ada"}})
        again = await asked(f"{url}{API}/runs/{body['id']}")
    assert status == 200
    assert again[:2] == (200, body)
    assert (body["status"], body["success"], body["client"]) == ("ok", True, "ci")
    assert body["output"] == {"said": "Hello, Ada"}
    assert body["label"] == {
        "integrity": "untrusted",
        "confidentiality": "private",
        "sources": ["greeter:greet"],
    }
    assert body["started_at"] <= body["ended_at"]


async def test_blocks_tell_status_and_headers_in_the_answer(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=ALL) as url:
        status, body, _ = await run(url, "blocks")
    assert (status, body["output"]) == (200, {"brewed": 1})
    assert body["response"] == {"status": 418, "headers": {"X-Pot": "tea"}}


async def test_a_run_that_fails_is_an_answer_with_the_words_that_its_caller_can_use(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=ALL) as url:
        status, body, _ = await run(url, "failing", {"inputs": {"n": 5}})
        assert (await asked(f"{url}{API}/runs/{body['id']}"))[1] == body
    assert (status, body["status"], body["success"]) == (200, "failed", False)
    assert (body["error"]["kind"], body["error"]["step"]) == ("condition", "no")
    assert body["error"]["message"]
    assert "output" not in body


async def test_a_secret_is_withheld_at_once_and_later(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        _, body, _ = await run(url, "telling")
        _, later, _ = await asked(f"{url}{API}/runs/{body['id']}")
    assert (body["status"], body["withheld"], "output" in body) == ("ok", True, False)
    assert later == body
    assert SECRET not in str(body)


async def test_a_run_goes_on_by_itself_is_seen_and_cancelled(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        id = await begun(url, "stuck")
        _, body, _ = await asked(f"{url}{API}/runs/{id}")
        assert (body["status"], body["ensemble"], body["client"]) == ("running", "stuck", "ci")
        assert [one["id"] for one in (await asked(f"{url}{API}/runs"))[1]["runs"]] == [id]
        status, _, _ = await asked(f"{url}{API}/runs/{id}/cancel", "POST")
        assert status == 202
        assert [name for name, _ in await followed(url, id)][-1] == "end"
        _, body, _ = await asked(f"{url}{API}/runs/{id}")
        assert (body["status"], body["error"]["kind"]) == ("cancelled", "cancelled")
        status, body, _ = await asked(f"{url}{API}/runs/{id}/cancel", "POST")
        assert (status, body["message"]) == (409, f"The run {id} has ended: cancelled.")


async def followed(url: str, id: str, **headers: str) -> list[tuple[str, Any]]:
    """All events of a run, until the last."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {CI}", **headers}) as session:
        async with session.get(f"{url}{API}/runs/{id}/events") as response:
            assert response.content_type == "text/event-stream"
            return [one async for one in events(response)]


async def test_the_other_spelling_of_going_on_by_itself(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        place = f"{url}{API}/ensembles/greeting/run/async"
        status, body, headers = await asked(place, "POST", json={"inputs": {"name": "Ada"}})
        assert status == 202
        told = await followed(url, body["id"])
        assert told[-1][1]["output"] == {"said": "Hello, Ada"}
        assert (await asked(url + headers["Location"]))[1] == told[-1][1]


async def test_the_steps_of_a_run_are_told_as_they_end(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {CI}", "Accept": "text/event-stream"}
    async with served(tmp_path) as url, aiohttp.ClientSession(headers=headers) as session:
        place = f"{url}{API}/ensembles/greeting/run"
        async with session.post(place, json={"inputs": {"name": "Ada"}}) as response:
            told = [one async for one in events(response)]
        kept = await followed(url, told[0][1]["id"])
        rest = await followed(url, told[0][1]["id"], **{"Last-Event-ID": "2"})
    assert [name for name, _ in told] == ["start", "step", "step", "step", "step", "end"]
    assert [(data["step"], data["status"]) for name, data in told if name == "step"] == [
        ("greet", "running"),
        ("greet", "ok"),
        ("again", "running"),
        ("again", "ok"),
    ]
    assert told[-1][1]["output"] == {"said": "Hello, Ada"}
    ended = [(data["step"], data["status"]) for name, data in kept if name == "step"]
    assert ended == [("greet", "ok"), ("again", "ok")]
    assert kept[-1] == told[-1]
    assert rest == kept[2:]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_who_goes_away_calls_off_the_run_that_they_waited_for(tmp_path: Path, accept: str) -> None:
    made: list[Service] = []
    hanging = Reached("hang")
    async with served(tmp_path, made=made, observers=[hanging]) as url:
        asking = asyncio.create_task(run(url, "stuck", headers={"Accept": accept}))
        await hanging.reached.wait()
        (live,) = made[0].board.going
        asking.cancel()
        ended = await live.handle.wait()
    assert ended.error is not None
    assert ended.error["kind"] == "cancelled"


async def test_a_run_that_goes_on_is_not_gone_on_with(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        id = await begun(url, "stuck")
        status, body, _ = await asked(f"{url}{API}/runs/{id}/resume", "POST")
        assert (status, body["message"]) == (409, f"The run {id} goes on already.")


async def test_a_durable_run_that_the_server_leaves_behind_is_gone_on_with(tmp_path: Path) -> None:
    hanging = Reached("hang", CallStarted)
    async with served(tmp_path, observers=[hanging]) as url:
        place = f"{url}{API}/ensembles/stuck/run/async"
        _, body, _ = await asked(place, "POST", json={"durable": True})
        await hanging.reached.wait()
    id = body["id"]
    async with served(tmp_path) as url:
        _, body, _ = await asked(f"{url}{API}/runs/{id}")
        assert (body["status"], body["durable"]) == ("running", True)
        status, _, _ = await asked(f"{url}{API}/runs/{id}/resume", "POST")
        assert status == 202
        ended = (await followed(url, id))[-1][1]
    # Nobody knows what became of the call that was under way, so it is not made again.
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "unknown")


async def test_a_run_whose_record_cannot_be_kept_is_told_of_as_broken_off(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {CI}", "Accept": "text/event-stream"}
    store = FaultyRuns(MemoryRuns(), 3)
    async with served(tmp_path, runs=store) as url, aiohttp.ClientSession(headers=headers) as session:
        place = f"{url}{API}/ensembles/greeting/run"
        asked_for = {"inputs": {"name": "Ada"}, "durable": True}
        async with session.post(place, json=asked_for) as response:
            told = [one async for one in events(response)]
        status, body, _ = await run(url, "greeting", asked_for)
    assert told[-1] == ("error", {"error": "Failed", "message": "The run broke off.", "faults": []})
    assert (status, body["error"]) == (503, "Unavailable")


async def test_no_more_runs_are_begun_than_can_go_on(tmp_path: Path) -> None:
    made: list[Service] = []
    hook = {**BLOCKS, "ensemble": "hook", "trigger": {"type": "http", "path": "/hook"}}
    async with served(tmp_path, made=made, ensembles=[*ALL, hook]) as url:
        made[0].board.most = 1
        id = await begun(url, "stuck")
        for status, body, headers in (await run(url, "blocks"), await asked(f"{url}/hook")):
            assert (status, body["error"], headers["Retry-After"]) == (429, "Too many requests", "5")
        await asked(f"{url}{API}/runs/{id}/cancel", "POST")
        await followed(url, id)
        assert (await run(url, "blocks"))[0] == 200


async def test_an_admin_reads_the_record_of_a_run_without_what_is_secret(tmp_path: Path) -> None:
    async with served(tmp_path, serve={"clients": ROOT}) as url:
        _, body, _ = await run(url, "telling")
        status, record, _ = await asked(f"{url}{API}/runs/{body['id']}/record", token=BOSS)
        assert (await asked(f"{url}{API}/runs/{body['id']}/record"))[0] == 403
        assert (await asked(f"{url}{API}/runs/none/record", token=BOSS))[0] == 404
    assert status == 200
    assert [entry["kind"] for entry in record["entries"]][0::100] == ["RunStarted"]
    assert record["entries"][-1]["kind"] == "RunEnded"
    assert SECRET not in str(record)


async def test_a_run_that_takes_too_long_ends(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await run(url, "stuck", {"timeout": 50})
    assert (status, body["status"], body["error"]["kind"]) == (200, "failed", "timeout")


async def test_a_client_sees_and_ends_its_own_runs_only_and_an_admin_those_of_all(tmp_path: Path) -> None:
    clients = {**ROOT, "eve": "${env.HOOK}"}
    eve = "h" * 40
    async with served(tmp_path, serve={"clients": clients}) as url:
        live = await begun(url, "stuck")
        _, body, _ = await run(url, "greeting", {"inputs": {"name": "Ada"}})
        for id in (live, body["id"]):
            for method, place in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
                status, found, _ = await asked(f"{url}{API}/runs/{id}{place}", method, eve)
                assert (status, found["message"]) == (404, f"There is no run {id!r}.")
        assert (await asked(f"{url}{API}/runs", token=eve))[1] == {"runs": [], "next": None}
        _, listed, _ = await asked(f"{url}{API}/runs", token=BOSS)
        assert [one["id"] for one in listed["runs"]] == [live, body["id"]]
        assert (await asked(f"{url}{API}/runs/{live}/cancel", "POST", BOSS))[0] == 202


async def test_runs_are_listed_by_pages_and_by_what_is_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=ALL) as url:
        ids = [(await run(url, "blocks"))[1]["id"] for _ in range(3)]
        other = (await run(url, "failing", {"inputs": {"n": 5}}))[1]["id"]
        _, page, _ = await asked(f"{url}{API}/runs?limit=2")
        _, rest, _ = await asked(f"{url}{API}/runs?limit=5&before={page['next']}")
        _, failed, _ = await asked(f"{url}{API}/runs?status=failed")
        _, named, _ = await asked(f"{url}{API}/runs?ensemble=blocks")
    seen = [one["id"] for one in page["runs"] + rest["runs"]]
    assert sorted(seen) == sorted([*ids, other])
    assert (page["next"], rest["next"]) == (page["runs"][-1]["id"], None)
    assert [one["id"] for one in failed["runs"]] == [other]
    assert sorted(one["id"] for one in named["runs"]) == sorted(ids)


async def test_runs_inside_of_others_are_listed_where_they_are_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path, ensembles=[*ALL, OUTER]) as url:
        _, body, _ = await run(url, "outer")
        _, page, _ = await asked(f"{url}{API}/runs")
        _, every, _ = await asked(f"{url}{API}/runs?nested=true")
    assert [one["id"] for one in page["runs"]] == [body["id"]]
    assert sorted(one.get("parent", "") for one in every["runs"]) == ["", body["id"]]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=201", "status=gone", "limit=", "nested=7"])
async def test_a_question_that_cannot_be_answered_is_refused(tmp_path: Path, query: str) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await asked(f"{url}{API}/runs?{query}")
    assert (status, body["error"]) == (400, "Invalid query")


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        (b"{", "application/json", 400, "Input data was truncated"),
        (b"[]", "application/json", 400, "Expected `object`"),
        (b"\xff", "application/json", 400, "malformed"),
        (b"[" * 100_000, "application/json", 400, ""),
        (b'{"inputs": []}', "application/json", 400, "$.inputs"),
        (b'{"input": {}, "inputs": {}}', "application/json", 400, "only one of them"),
        (b'{"imputs": {}}', "application/json", 400, "unknown field `imputs`"),
        (b'{"timeout": 0}', "application/json", 400, "$.timeout"),
        (b'{"inputs": {"name": 1}}', "application/json", 400, "the input `name` must be text, not a number"),
        (b"{}", "application/json", 400, "the input `name` is missing"),
        (b"{}", "text/plain", 415, "not text/plain"),
        (b"{}", "", 415, "of no type"),
        (b'{"inputs": {"name": "\\ud800"}}', "application/json", 400, ""),
        (b" " * 5000, "application/json", 413, ""),
    ],
)
async def test_what_is_wrong_with_a_request_is_told_and_nothing_is_started(
    tmp_path: Path, body: bytes, kind: str, status: int, message: str
) -> None:
    server = greeter()
    most = 4096 if status == 413 else 10**6
    headers = {"Content-Type": kind} if kind else {}
    skip = [] if kind else ["Content-Type"]
    async with served(tmp_path, server=server, serve={"max_body_bytes": most}) as url:
        async with aiohttp.ClientSession(skip_auto_headers=skip) as session:
            headers["Authorization"] = f"Bearer {CI}"
            async with session.post(
                f"{url}{API}/ensembles/greeting/run", data=body, headers=headers
            ) as response:
                found = await response.text()
        _, listed, _ = await asked(f"{url}{API}/runs")
    assert response.status == status
    assert message in found
    assert (server.connections, listed["runs"]) == (0, [])


async def test_a_role_that_is_missing_is_named(tmp_path: Path) -> None:
    clients = {"ci": {"tokens": "${env.CI}", "roles": ["approve"]}}
    async with served(tmp_path, serve={"clients": clients}) as url:
        status, body, _ = await run(url, "greeting", {"inputs": {"name": "Ada"}})
        assert (status, body["message"]) == (403, "This takes the role 'run'.")
        assert (await asked(f"{url}{API}/runs"))[1]["runs"] == []


async def test_what_is_not_there_is_told_in_the_same_shape(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await asked(f"{url}{API}/nothing")
        assert (status, body["error"]) == (404, "Not Found")
        status, body, _ = await asked(f"{url}{API}/runs", "DELETE")
        assert (status, body["error"]) == (405, "Method Not Allowed")
