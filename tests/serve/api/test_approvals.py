"""What waits for a person, decided by the HTTP API: by whom, how often, and what goes on then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.testing import MemoryAudit
from tests.serve.api.test_runs import API, followed, run
from tests.serve.house import ENSEMBLES, STEP
from tests.serve.test_http import BOSS, CI, asked, served
from tests.serve.test_oauth import kept_in

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.serve import Service

EVE = "h" * 40
CLIENTS = {
    "ci": "${env.CI}",
    "boss": {"token": "${env.BOSS}", "roles": ["approve"]},
    "eve": "${env.HOOK}",
}
FORM = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}


def asking(**config: Any) -> dict[str, Any]:
    return {
        "ensemble": "asking",
        "trigger": {"type": "api"},
        "agents": [
            {"name": "ask", "operation": "hitl", "config": {"prompt": "Go on?", **config}},
            {**STEP, "input": {"name": "${ask.output.answer.n || 'Ada'}"}},
        ],
        "outputs": {"said": "${greet.output}"},
    }


def house(root: Path, ensemble: dict[str, Any], **parts: Any) -> Any:
    return served(root, ensembles=[*ENSEMBLES, ensemble], serve={"clients": CLIENTS}, **parts)


async def suspended(url: str, token: str = CI) -> tuple[str, str]:
    """The ids of a run that waits, and of what it waits for."""
    status, body, headers = await run(url, "asking", {"durable": True}, token)
    assert (status, body["status"], body["success"]) == (202, "suspended", False)
    assert headers["Location"] == f"{API}/runs/{body['id']}"
    (waiting,) = body["waiting"]
    assert (waiting["step"], waiting["what"]) == ("ask", "hitl")
    assert (await asked(f"{url}{headers['Location']}", token=token))[1] == body
    return body["id"], waiting["approvals"][0]


async def listed(service: Service) -> tuple[Any, ...]:
    """What waits, once something does."""
    found: tuple[Any, ...] = ()
    while not found:
        found = await service.runtime.approvals.list()
    return found


async def test_a_run_waits_without_a_process_and_goes_on_when_somebody_has_decided(tmp_path: Path) -> None:
    audit = MemoryAudit()
    async with house(tmp_path, asking(schema=FORM), audit=audit) as url:
        id, approval = await suspended(url)
        _, body, _ = await asked(f"{url}{API}/approvals", token=BOSS)
        assert [one["id"] for one in body["approvals"]] == [approval]
        _, one, _ = await asked(f"{url}{API}/approvals/{approval}", token=BOSS)
        assert one == body["approvals"][0]
        assert (one["prompt"], one["client"], one["run"], one["schema"]) == ("Go on?", "ci", id, FORM)
        place = f"{url}{API}/approvals/{approval}/approve"
        status, wrong, _ = await asked(place, "POST", BOSS, json={"answer": {"n": 5}})
        assert (status, wrong["error"]) == (400, "Invalid answer")
        status, decided, _ = await asked(place, "POST", BOSS, json={"answer": {"n": "Eve"}, "reason": "fine"})
        assert (status, decided["state"], decided["by"]) == (200, "approved", "client:boss")
        assert (await followed(url, id))[-1][0] == "end"
        _, body, _ = await asked(f"{url}{API}/runs/{id}")
    assert (body["status"], body["durable"]) == ("ok", True)
    assert "client:boss" in str(audit.records)


async def test_what_waits_outlasts_the_server(tmp_path: Path) -> None:
    async with house(tmp_path, asking()) as url:
        id, approval = await suspended(url)
    async with house(tmp_path, asking()) as url:
        assert (await asked(f"{url}{API}/runs/{id}"))[1]["status"] == "suspended"
        assert (await asked(f"{url}{API}/approvals/{approval}/approve", "POST", BOSS))[0] == 200
        assert (await followed(url, id))[-1][1]["output"] == {"said": "Hello, Ada"}


async def test_no_is_an_answer_too(tmp_path: Path) -> None:
    async with house(tmp_path, asking()) as url:
        id, approval = await suspended(url)
        place = f"{url}{API}/approvals/{approval}/reject"
        status, decided, _ = await asked(place, "POST", BOSS, json={"reason": "not today"})
        assert (status, decided["state"]) == (200, "denied")
        told = await followed(url, id)
    assert ("ask", "failed") in [(data.get("step"), data.get("status")) for _, data in told]


async def test_who_may_not_decide_changes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, asking()) as url:
        id, approval = await suspended(url)
        for token, words in (
            (CI, "what it raised itself"),
            (EVE, f"'client:eve' may not decide about {approval}"),
        ):
            assert (await asked(f"{url}{API}/approvals", token=token))[1] == {"approvals": []}
            for method, word in (("GET", ""), ("POST", "/approve"), ("POST", "/reject")):
                status, body, _ = await asked(f"{url}{API}/approvals/{approval}{word}", method, token)
                assert (status, words in body["message"]) == (403, True)
        status, body, _ = await asked(f"{url}{API}/runs/{id}/resume", "POST")
        assert (status, body["message"]) == (409, f"The run {id} waits for somebody to decide.")
        assert (await asked(f"{url}{API}/runs/{id}"))[1]["status"] == "suspended"
        assert (await asked(f"{url}{API}/approvals/none", token=BOSS))[0] == 404


async def test_a_caller_answers_its_own_question_where_the_step_says_so(tmp_path: Path) -> None:
    async with house(tmp_path, asking(approvers=["caller"])) as url:
        id, approval = await suspended(url)
        assert (await asked(f"{url}{API}/approvals/{approval}/approve", "POST", BOSS))[0] == 403
        assert (await asked(f"{url}{API}/approvals/{approval}/approve", "POST", CI))[0] == 200
        await followed(url, id)
        assert (await asked(f"{url}{API}/runs/{id}"))[1]["status"] == "ok"


@pytest.mark.parametrize("word", ["approve", "reject"])
async def test_a_call_that_a_rule_holds_back_is_decided_once(tmp_path: Path, word: str) -> None:
    says = {"policies": {"rules": [{"name": "r", "when": {"tool": "mcp://greeter/*"}, "then": "ask"}]}}
    made: list[Service] = []
    async with house(tmp_path, asking(), says={**says, "approval_timeout": 30_000}, made=made) as url:
        place = f"{url}{API}/ensembles/greeting/run/async"
        _, begun, _ = await asked(place, "POST", json={"inputs": {"name": "Bo"}})
        (waiting,) = await listed(made[0])
        status, body, _ = await asked(f"{url}{API}/approvals/{waiting.id}", token=BOSS)
        assert (status, body["what"], body["uri"]) == (200, "call", "mcp://greeter/greet")
        assert body["arguments"] == [{"at": "/name", "shown": '"Bo"'}]
        assert (await asked(f"{url}{API}/approvals/{waiting.id}/{word}", "POST", BOSS))[0] == 200
        again, body, _ = await asked(f"{url}{API}/approvals/{waiting.id}/approve", "POST", BOSS)
        assert again in (404, 409)  # used already, or not yet
        ended = (await followed(url, begun["id"]))[-1][1]
    assert ended["success"] is (word == "approve")


async def test_a_token_decides_once_whoever_brings_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with house(tmp_path, asking(schema={"type": "object"})) as url:
        id, approval = await suspended(url)
        for token_of in (CI, EVE):
            assert (await asked(f"{url}{API}/approvals/{approval}/token", "POST", token_of))[0] == 403
        _, old, _ = await asked(f"{url}{API}/approvals/{approval}/token", "POST", BOSS)
        _, given, _ = await asked(f"{url}{API}/approvals/{approval}/token", "POST", BOSS)
        token = given["token"]
        assert given["path"] == f"/callback/{token}"
        assert (await asked(url + old["path"], "POST", None, json={"approved": True}))[0] == 410
        said = {"approved": True, "feedback": {"n": "Eve"}, "reason": "ok", "approver": "Eve"}
        status, body, _ = await asked(f"{url}/callback/{token}", "POST", None, json={"approved": 1})
        assert (status, body["error"]) == (400, "Invalid body")
        status, body, _ = await asked(f"{url}/callback/{token}", "POST", None, json={"approved": True})
        assert (status, body["error"]) == (400, "Invalid answer")
        status, body, _ = await asked(f"{url}/callback/{token}", "POST", None, json=said)
        assert (status, body["state"], body["by"]) == (200, "approved", "callback")
        assert (await followed(url, id))[-1][1]["output"] == {"said": "Hello, Eve"}
        for used in (token, "hitl_nothing", "nothing"):
            status, body, _ = await asked(f"{url}/callback/{used}", "POST", None, json=said)
            assert (status, body["error"]) == (410, "Gone")
        assert (await asked(f"{url}{API}/approvals/{token}", token=BOSS))[0] == 404
        assert (await asked(f"{url}{API}/approvals/{approval}/token", "POST", BOSS))[0] == 404
    assert token not in kept_in(tmp_path)
    assert token not in caplog.text


async def test_a_token_says_no_too(tmp_path: Path) -> None:
    async with house(tmp_path, asking()) as url:
        id, approval = await suspended(url)
        _, given, _ = await asked(f"{url}{API}/approvals/{approval}/token", "POST", BOSS)
        said = {"approved": False, "reason": "no"}
        status, body, _ = await asked(url + given["path"], "POST", None, json=said)
        assert (status, body["state"]) == (200, "denied")
        assert (await followed(url, id))[-1][0] == "end"


async def test_a_run_that_waits_can_be_ended(tmp_path: Path) -> None:
    async with house(tmp_path, asking()) as url:
        id, approval = await suspended(url)
        status, body, _ = await asked(f"{url}{API}/runs/{id}/cancel", "POST")
        assert (status, body["status"]) == (202, "cancelled")
        assert (await asked(f"{url}{API}/approvals/{approval}", token=BOSS))[0] == 404
        status, body, _ = await asked(f"{url}{API}/runs/{id}/resume", "POST")
        assert (status, body["message"]) == (409, f"The run {id} has ended: cancelled.")


async def test_what_was_decided_elsewhere_is_gone_on_with_when_it_is_asked_for(tmp_path: Path) -> None:
    made: list[Service] = []
    async with house(tmp_path, asking(), made=made) as url:
        id, approval = await suspended(url)
        await made[0].runtime.approvals.approve(approval)
        assert (await asked(f"{url}{API}/runs/{id}/resume", "POST", EVE))[0] == 404
        status, body, _ = await asked(f"{url}{API}/runs/{id}/resume", "POST")
        assert (status, body["status"], body["client"]) == (202, "running", "ci")
        assert (await followed(url, id))[-1][1]["status"] == "ok"
        _, body, _ = await run(url, "greeting", {"inputs": {"name": "Ada"}})
        status, body, _ = await asked(f"{url}{API}/runs/{body['id']}/resume", "POST")
        assert (status, "is not durable" in body["message"]) == (409, True)
