"""Triggers by HTTP: who may ask, what becomes of the request, and what is answered."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from luthier.errors import SpecError, StoreError
from luthier.govern import Verdict
from luthier.serve import Listening, Service
from luthier.testing import MemoryAudit, MemoryState
from tests.serve.house import ENSEMBLES, SECRET, STEP, greeter, house
from tests.serve.test_http import BOSS, CI, asked, served
from tests.serve.test_oauth import kept_in

if TYPE_CHECKING:
    from pathlib import Path

HOOK = "h" * 40


def echo(*, outputs: Any = None, inputs: Any = None, **trigger: Any) -> dict[str, Any]:
    """An ensemble that gives back what it got."""
    return {
        "ensemble": "echo",
        "inputs": inputs or {},
        "trigger": {"type": "http", **trigger},
        "agents": [{"name": "a", "operation": "transform", "config": {"value": "${input}"}}],
        "outputs": {"got": "${a.output}"} if outputs is None else outputs,
    }


def site(root: Path, ensemble: dict[str, Any], **parts: Any) -> Any:
    return served(root, ensembles=[*ENSEMBLES, ensemble], **parts)


async def test_input_is_query_body_path_and_the_request_itself(tmp_path: Path) -> None:
    ensemble = echo(
        path="/orders/:id/{part}",
        methods=["GET", "POST"],
        inputs={"id": "string", "count": {"type": "integer"}, "url": "string"},
    )
    async with site(tmp_path, ensemble) as url:
        place = f"{url}/orders/07/x%20y?count=3&tag=a&tag=b&free=1&url=https://a.example"
        status, body, _ = await asked(
            place, "POST", json={"free": [1], "method": "forged"}, headers={"X-A": "b", "Cookie": "c=1"}
        )
        _, read, _ = await asked(place)
    got = body["got"]
    assert status == 200
    named = {name: got[name] for name in ("id", "part", "count", "tag", "free", "url")}
    assert named == {
        "id": "07",
        "part": "x y",
        "count": 3,
        "tag": ["a", "b"],
        "free": [1],
        "url": "https://a.example",
    }
    assert (got["method"], got["path"]) == ("POST", "/orders/07/x y")
    assert got["body"] == {"free": [1], "method": "forged"}
    assert got["query"] == {"count": "3", "tag": ["a", "b"], "free": "1", "url": "https://a.example"}
    assert got["params"] == {"id": "07", "part": "x y"}
    assert got["headers"]["x-a"] == "b"
    assert not {"authorization", "cookie"} & set(got["headers"])
    assert "body" not in read["got"]


@pytest.mark.parametrize(
    ("kind", "sent", "body"),
    [
        ("application/x-www-form-urlencoded", b"a=1&b=", {"a": "1", "b": ""}),
        ("text/plain", "hé".encode(), "hé"),
        ("application/vnd.github+json", b"[1]", [1]),
    ],
)
async def test_a_body_may_be_a_form_text_or_any_json(
    tmp_path: Path, kind: str, sent: bytes, body: Any
) -> None:
    async with site(tmp_path, echo(methods=["POST"])) as url:
        _, found, _ = await asked(f"{url}/echo", "POST", data=sent, headers={"Content-Type": kind})
    assert found["got"]["body"] == body


@pytest.mark.parametrize(
    ("kind", "sent", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"[" * 100_000, 400),
        ("text/plain", b"\xff", 400),
        ("application/x-www-form-urlencoded", b"a=%ff", 400),
        ("application/octet-stream", b"x", 415),
        ("application/json", b'{"n": "x"}', 400),
        ("text/plain", b" " * 5000, 413),
    ],
)
async def test_a_body_that_does_not_fit_starts_nothing(
    tmp_path: Path, kind: str, sent: bytes, status: int
) -> None:
    ensemble = echo(methods=["POST"], inputs={"n": {"type": "integer"}})
    async with site(tmp_path, ensemble, serve={"max_body_bytes": 4096 if status == 413 else 10**6}) as url:
        found, _, _ = await asked(f"{url}/echo", "POST", data=sent, headers={"Content-Type": kind})
        assert found == status
        assert (await asked(f"{url}/api/v1/runs"))[1]["runs"] == []


@pytest.mark.parametrize(
    ("outputs", "status", "body", "headers"),
    [
        ([{"status": 201, "headers": {"X-A": "b"}, "body": {"a": 1}}], 201, {"a": 1}, {"X-A": "b"}),
        ([{"format": "csv", "body": {"rows": [["a", 1]]}}], 200, "a,1", {"Content-Type": "text/csv"}),
        ([{"rawBody": "hi", "headers": {"Content-Type": "text/plain"}}], 200, "hi", {}),
        ([{"redirect": {"url": "/there", "status": 307}}], 307, "", {"Location": "/there"}),
        ([{"redirect": {"url": "https://a.example/#x"}}], 302, "", {"Location": "https://a.example/#x"}),
        ([{"redirect": {"url": "javascript:alert(1)"}}], 302, "", {"Location": None}),
        ([{"redirect": {"url": "//evil.example"}}], 302, "", {"Location": None}),
        ([{"status": 204, "body": 5}], 204, "", {}),
        ([{"body": 1, "headers": {"Content-Length": "5", "Transfer-Encoding": "x", "a b": "c"}}], 200, 1, {}),
        ([{"body": 1, "headers": {"Content-Type": "application/problem+json"}}], 200, "1", {}),
    ],
)
async def test_what_is_delivered_is_the_response(
    tmp_path: Path, outputs: Any, status: int, body: Any, headers: dict[str, Any]
) -> None:
    async with site(tmp_path, echo(outputs=outputs, cache="max-age=5")) as url:
        found, said, given = await asked(f"{url}/echo", allow_redirects=False)
    assert (found, said) == (status, body)
    assert (given["X-Content-Type-Options"], given["Cache-Control"]) == ("nosniff", "max-age=5")
    for name, value in headers.items():
        assert given.get(name) == value if value is None else given[name].startswith(value)


async def test_a_run_that_fails_or_holds_a_secret_says_so_and_no_more(tmp_path: Path) -> None:
    telling = {**echo(outputs="${env.KEY_OF_HOUSE}"), "ensemble": "tells"}
    step = {"name": "a", "operation": "transform", "condition": "${input.method}", "config": {"value": 1}}
    failing = {**echo(outputs="${a.output}"), "ensemble": "no", "agents": [step]}
    async with served(tmp_path, ensembles=[telling, failing]) as url:
        status, body, _ = await asked(f"{url}/tells")
        assert (status, body["error"], SECRET in str(body)) == (500, "Ensemble execution failed", False)
        status, body, _ = await asked(f"{url}/no")
        assert (status, body["message"].startswith("It failed at step a [condition]")) == (500, True)
        status, body, _ = await asked(f"{url}/echo")
        assert (status, body) == (404, {"error": "Not Found", "message": "See /openapi.json.", "faults": []})


def signed(body: bytes, at: float | None = None) -> dict[str, str]:
    now = str(int(time.time() if at is None else at))
    digits = hmac.new(HOOK.encode(), f"{now}.".encode() + body, sha256).hexdigest()
    return {"X-Webhook-Signature": f"sha256={digits}", "X-Webhook-Timestamp": now}


BODY = b'{"name": "Bo"}'
Signed = Callable[[], dict[str, str]]
BASIC = {"Authorization": f"Basic {base64.b64encode(HOOK.encode()).decode()}"}


@pytest.mark.parametrize(
    ("trigger", "headers", "status"),
    [
        ({}, {"Authorization": f"Bearer {CI}"}, 200),
        ({}, {}, 401),
        ({"clients": ["boss"]}, {"Authorization": f"Bearer {CI}"}, 403),
        ({"clients": ["boss"]}, {"Authorization": f"Bearer {BOSS}"}, 200),
        ({"public": True}, {}, 200),
        ({"public": True}, {"Authorization": "Bearer anything"}, 200),
        ({"public": True}, {"Origin": "https://evil.example.com"}, 403),
        ({"auth": {"token": "${env.HOOK}"}}, {"Authorization": f"Bearer {HOOK}"}, 200),
        ({"auth": {"token": "${env.HOOK}"}}, {"Authorization": f"Bearer {CI}"}, 403),
        ({"auth": {"token": "${env.HOOK}"}, "clients": ["ci"]}, {"Authorization": f"Bearer {CI}"}, 200),
        ({"auth": {"token": "${env.HOOK}"}}, {}, 401),
        ({"auth": {"type": "basic", "secret": "${env.HOOK}"}}, BASIC, 200),
        ({"auth": {"type": "basic", "secret": "${env.HOOK}"}}, {"Authorization": f"Bearer {CI}"}, 401),
        ({"auth": {"type": "signature", "secret": "${env.HOOK}"}}, lambda: signed(BODY), 200),
        ({"auth": {"type": "signature", "secret": "${env.HOOK}"}}, signed(BODY, 0), 401),
        ({"auth": {"type": "signature", "secret": "${env.HOOK}"}}, lambda: signed(b"{}"), 401),
        ({"auth": {"type": "signature", "secret": "${env.HOOK}"}}, {"Authorization": f"Bearer {CI}"}, 401),
    ],
)
async def test_who_may_ask(
    tmp_path: Path, trigger: dict[str, Any], headers: dict[str, str] | Signed, status: int
) -> None:
    ensemble = {
        **echo(path="/hook", **{**trigger, "type": "webhook"}),
        "inputs": {"name": {"type": "string"}},
        "agents": [STEP],
        "outputs": "${greet.output}",
    }
    server, audit = greeter(), MemoryAudit()
    async with site(tmp_path, ensemble, server=server, audit=audit) as url:
        given = headers() if callable(headers) else headers  # signed when sent: a signature is soon too old
        sent = {"Content-Type": "application/json", **given}
        found, body, _ = await asked(f"{url}/hook", "POST", None, data=BODY, headers=sent)
        assert (await asked(f"{url}/mcp/tools", token=HOOK))[0] == 401
    assert found == status
    assert (body == "Hello, Bo") is (status == 200)
    assert (server.connections > 0) is (status == 200)
    seen = f"{server.received} {audit.records} {kept_in(tmp_path)}"
    assert all(secret not in seen for secret in (CI, BOSS, HOOK, BASIC["Authorization"][6:]))


def signed_hook(**more: Any) -> dict[str, Any]:
    auth = {"type": "signature", "secret": "${env.HOOK}", **more}
    return {
        **echo(path="/hook", type="webhook", auth=auth),
        "inputs": {"name": {"type": "string"}},
        "agents": [STEP],
        "outputs": "${greet.output}",
    }


async def test_a_signature_with_a_time_begins_one_run_whoever_sends_it_again(tmp_path: Path) -> None:
    server, audit = greeter(), MemoryAudit()
    async with site(tmp_path, signed_hook(), server=server, audit=audit) as url:
        sent = {"Content-Type": "application/json", **signed(BODY)}
        posts = [asked(f"{url}/hook?n={n}", "POST", None, data=BODY, headers=sent) for n in range(3)]
        found = sorted([(status, str(body)) for status, body, _ in await asyncio.gather(*posts)])
        later = {**sent, **signed(BODY, time.time() + 1)}
        assert (await asked(f"{url}/hook", "POST", None, data=BODY, headers=later))[0] == 200
    assert [status for status, _ in found] == [200, 409, 409]
    assert "a signature is good once" in found[1][1]
    assert len([one for one in server.received if one.get("method") == "tools/call"]) == 2
    refused = [one for one in audit.records if isinstance(one, Verdict) and one.verdict == "refused"]
    assert [(one.uri, one.rule, one.principals) for one in refused] == [
        ("ensemble:echo", "signature used before", ("client:trigger/echo",))
    ] * 2
    assert sent["X-Webhook-Signature"] not in str(audit.records)


async def test_a_signature_is_good_once_in_all_processes_of_a_project(tmp_path: Path) -> None:
    state, sent = MemoryState(), {"Content-Type": "application/json", **signed(BODY)}
    found = []
    for _ in range(2):
        async with site(tmp_path, signed_hook(), state=state) as url:
            found.append((await asked(f"{url}/hook", "POST", None, data=BODY, headers=sent))[0])
    assert found == [200, 409]


async def test_what_began_nothing_has_not_used_its_signature(tmp_path: Path) -> None:
    made: list[Service] = []
    async with site(tmp_path, signed_hook(), made=made) as url:
        for body, status in ((b"{", 400), (b'{"name": 1}', 400), (BODY, 429)):
            made[0].board.most = 0 if body == BODY else 10
            sent = {"Content-Type": "application/json", **signed(body)}
            for _ in range(2):
                assert (await asked(f"{url}/hook", "POST", None, data=body, headers=sent))[0] == status
        made[0].board.most = 10
        assert (await asked(f"{url}/hook", "POST", None, data=BODY, headers=sent))[0] == 200


async def test_where_signatures_cannot_be_remembered_nothing_begins(tmp_path: Path) -> None:
    class Broken(MemoryState):
        def swap(self, kind: str, key: str, expected: Any, value: Any) -> bool:
            if kind == "signatures":
                raise StoreError("The store cannot be used.")
            return super().swap(kind, key, expected, value)

    server = greeter()
    async with site(tmp_path, signed_hook(), server=server, state=Broken()) as url:
        sent = {"Content-Type": "application/json", **signed(BODY)}
        status, body, _ = await asked(f"{url}/hook", "POST", None, data=BODY, headers=sent)
    assert (status, body["error"], server.connections) == (503, "Unavailable", 0)


async def test_a_signature_without_a_time_is_good_again(tmp_path: Path) -> None:
    digits = hmac.new(HOOK.encode(), BODY, sha256).hexdigest()
    sent = {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={digits}"}
    async with site(tmp_path, signed_hook(preset="github")) as url:
        for _ in range(2):
            assert (await asked(f"{url}/hook", "POST", None, data=BODY, headers=sent))[0] == 200


async def test_a_body_over_the_limit_is_not_read_to_its_end_for_a_signature(tmp_path: Path) -> None:
    ensemble = echo(methods=["POST"], auth={"type": "signature", "secret": "${env.HOOK}"})
    async with site(tmp_path, ensemble, serve={"max_body_bytes": 100}) as url:
        body = b" " * 200
        status, said, _ = await asked(f"{url}/echo", "POST", None, data=body, headers=signed(body))
    assert (status, said["message"]) == (413, "The body has more than 100 bytes.")


async def test_its_caller_is_the_trigger_or_the_client_and_what_it_sends_is_not_trusted(
    tmp_path: Path,
) -> None:
    seen = []

    def check(call: Any) -> None:
        seen.append((call.principals[0], call.label.integrity.name, call.label.confidentiality.name))

    ensembles = [
        {**echo(path=path, **trigger), "ensemble": name, "agents": [STEP], "outputs": "${greet.output}"}
        for name, path, trigger in (("own", "/own", {"public": True}), ("ours", "/ours", {}))
    ]
    async with served(tmp_path, ensembles=ensembles, policies=[check]) as url:
        await asked(f"{url}/own?name=Bo", token=None)
        await asked(f"{url}/ours?name=Bo")
    assert seen == [("client:trigger/own", "untrusted", "private"), ("client:ci", "untrusted", "private")]


async def test_a_webhook_may_be_answered_before_its_run_has_ended(tmp_path: Path) -> None:
    hook = echo(path="/hook", **{"type": "webhook", "async": True, "public": True})
    async with site(
        tmp_path, hook, serve={"clients": {"ci": {"token": "${env.CI}", "roles": ["admin"]}}}
    ) as url:
        status, body, _ = await asked(f"{url}/hook", "POST", None)
        assert (status, body["status"]) == (202, "processing")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {CI}"}) as session:
            async with session.get(f"{url}/api/v1/runs/{body['executionId']}/events") as events:
                assert b"event: end" in await events.read()
        _, run, _ = await asked(f"{url}/api/v1/runs/{body['executionId']}")
    assert (run["status"], run["client"]) == ("ok", "trigger/echo")


async def test_too_many_requests_are_told_to_wait(tmp_path: Path) -> None:
    ensemble = echo(public=True, rateLimit={"requests": 2, "window": 60})
    async with site(tmp_path, ensemble) as url:
        found = [(await asked(f"{url}/echo", token=None)) for _ in range(3)]
    assert [status for status, _, _ in found] == [200, 200, 429]
    assert 0 < int(found[2][2]["Retry-After"]) <= 60


@pytest.mark.parametrize(
    ("trigger", "served"), [({"public": True}, False), ({"auth": {"token": "${env.HOOK}"}}, True)]
)
async def test_an_address_with_a_lock_of_its_own_is_enough_to_serve_and_an_open_one_is_not(
    tmp_path: Path, trigger: dict[str, Any], *, served: bool
) -> None:
    async with house(tmp_path, serve={}, ensembles=[echo(**trigger)]) as runtime:
        service = Service(runtime)
        refused = nullcontext() if served else pytest.raises(SpecError, match="Nobody has a token")
        with refused:
            listening = Listening.on("127.0.0.1:0", service, runtime.project, runtime.environ)
            serving = asyncio.create_task(listening.serve())
            status, _, _ = await asked(f"http://{listening.address}/echo", token=HOOK)
            assert status == 200
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


async def test_two_triggers_at_one_address_are_a_fault(tmp_path: Path) -> None:
    ensembles = [{**echo(path=path), "ensemble": name} for name, path in (("a", "/x/:a"), ("b", "/x/:b"))]
    async with house(tmp_path, serve={"clients": {"ci": "${env.CI}"}}, ensembles=ensembles) as runtime:
        with pytest.raises(SpecError, match=r"two triggers are at GET /x/\{\}"):
            Listening.on("127.0.0.1:0", Service(runtime), runtime.project, runtime.environ)
