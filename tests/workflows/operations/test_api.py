"""`api` and `http` steps through the gate: what they send, which answers are data, what is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from luthier import Runtime
from luthier.errors import SpecError
from luthier.taint import SECRET, UNTRUSTED, Confidentiality, Labelled
from luthier.tools import Reply
from tests.wire.http.support import Answering, Asked, Site, bounded
from tests.workflows.house import Gate, House, turns

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.workflows import Run

PROJECT = "mcpServers: {}\n"


def ensemble(config: dict[str, Any], operation: str = "api", **step: Any) -> dict[str, Any]:
    return {"ensemble": "t", "agents": [{"name": "a", "operation": operation, "config": config, **step}]}


async def run(
    root: Path, config: dict[str, Any], inputs: Any = None, *, project: str = PROJECT, **step: Any
) -> Run:
    (root / "luthier.yaml").write_text(project)
    async with Runtime.open(root / "luthier.yaml") as rt:
        done: Run = await bounded(rt.run(ensemble(config, **step), inputs))
    return done


def echo(asked: Asked, answering: Answering) -> None:
    answering.give(200, {"path": asked.path, "key": asked.headers.get("x-key"), "body": asked.body.decode()})


def base(site: Site) -> str:
    return site.url.removesuffix("/mcp")


@pytest.mark.parametrize("operation", ["api", "http"])
async def test_a_step_gives_status_headers_and_body(tmp_path: Path, operation: str) -> None:
    async with Site(echo) as site:
        done = await run(
            tmp_path,
            {
                "url": f"{base(site)}/items/${{input.id}}",
                "method": "post",
                "params": {"q": "${input.q}"},
                "headers": {"X-Key": "k-${input.id}"},
                "body": {"n": "${input.n}"},
            },
            {"id": "7", "q": "a&b", "n": 3},
            operation=operation,
        )
    assert done.success, done.error
    assert (done.output["status"], done.output["ok"], done.output["encoding"]) == (200, True, "json")
    assert done.output["body"] == {"path": "/items/7?q=a%26b", "key": "k-7", "body": '{"n":3}'}
    assert (done.label.integrity, done.label.confidentiality) == (
        UNTRUSTED.integrity,
        UNTRUSTED.confidentiality,
    )
    assert {(source.server, source.tool) for source in done.label.sources} == {("", "http")}


class TestStatuses:
    @pytest.mark.parametrize("allowed", [None, [400]])
    async def test_what_is_no_success_fails_the_step_with_its_status(
        self, tmp_path: Path, allowed: Any
    ) -> None:
        config = {"allowStatus": allowed} if allowed else {}
        async with Site(lambda _, answering: answering.give(404, {"message": "no such thing"})) as site:
            done = await run(tmp_path, {"url": f"{base(site)}/x?secret=1", **config})
        assert done.error is not None
        assert (done.error["kind"], done.error["status"]) == ("protocol", 404)
        assert "no such thing" in done.error["message"]
        assert "secret" not in done.error["message"], "a query may hold one"
        assert done.label.join(UNTRUSTED) == done.label, "the answer is a stranger's words"

    @pytest.mark.parametrize("allowed", ["any", [404, 410]])
    async def test_where_the_step_takes_it_it_is_data(self, tmp_path: Path, allowed: Any) -> None:
        async with Site(lambda _, answering: answering.give(404, {"gone": True})) as site:
            done = await run(tmp_path, {"url": base(site) + "/", "allow_status": allowed})
        assert done.success
        assert (done.output["status"], done.output["ok"], done.output["body"]) == (404, False, {"gone": True})


class TestAgain:
    RETRY: ClassVar[dict[str, Any]] = {"maxAttempts": 3, "initialDelay": 0}

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_statuses_of_the_list_are_tried_again(self, tmp_path: Path, method: str) -> None:
        statuses = iter([503, 500, 200])
        async with Site(lambda _, answering: answering.give(next(statuses), {})) as site:
            done = await run(tmp_path, {"url": base(site) + "/", "method": method}, retry=self.RETRY)
        assert (done.success, done.steps["a"].attempts) == (True, 3)

    async def test_others_are_not(self, tmp_path: Path) -> None:
        async with Site(lambda _, answering: answering.give(404, {})) as site:
            done = await run(tmp_path, {"url": base(site) + "/"}, retry=self.RETRY)
        assert (done.success, len(site.asked)) == (False, 1)

    @pytest.mark.parametrize(
        ("config", "times"),
        [
            ({}, 3),
            ({"method": "PUT"}, 3),
            ({"method": "DELETE"}, 3),
            ({"method": "POST"}, 1),
            ({"method": "PATCH"}, 1),
            ({"method": "POST", "idempotent": True}, 3),
            ({"method": "GET", "idempotent": False}, 1),
        ],
    )
    async def test_a_lost_reply_is_asked_for_again_only_where_that_does_nothing_twice(
        self, tmp_path: Path, config: dict[str, Any], times: int
    ) -> None:
        async with Site(lambda _, answering: answering.reset()) as site:
            done = await run(tmp_path, {"url": base(site) + "/", **config}, retry=self.RETRY)
        assert done.error is not None
        assert (done.error["kind"], done.steps["a"].attempts) == ("unknown", times)
        if config.get("method") in ("POST", "PATCH"):
            assert len(site.asked) == times

    async def test_where_nobody_listens_it_is_tried_again_whatever_the_method(self, tmp_path: Path) -> None:
        async with Site(echo) as site:
            pass
        done = await run(tmp_path, {"url": base(site) + "/", "method": "POST"}, retry=self.RETRY)
        assert done.error is not None
        assert (done.error["kind"], done.steps["a"].attempts) == ("connect", 3)

    async def test_the_wait_that_is_asked_for_is_kept(self) -> None:
        busy = {"status": 429, "ok": False, "headers": {"retry-after": "20"}, "body": None}
        gate = Gate({"/http": turns(Reply(structured=busy, is_error=True), {"status": 200, "ok": True})})
        house = House(gate)
        text = """
ensemble: t
agents:
  - name: a
    operation: api
    config: {url: https://example.com}
    retry: {maxAttempts: 2, initialDelay: 1000, retryOn: [429]}
"""
        async with house.running(text) as task:
            await house.clock.advance(19.5)
            assert len(gate.calls) == 1
            await house.clock.advance(0.5)
            assert (await task).success

    async def test_one_that_is_longer_than_the_step_waits_ends_it(self, tmp_path: Path) -> None:
        async with Site(lambda _, answering: answering.give(503, {}, retry_after="3600")) as site:
            done = await run(tmp_path, {"url": base(site) + "/"}, retry=self.RETRY)
        assert done.error is not None
        assert (done.error["retry_after"], len(site.asked)) == (3600, 1)

    async def test_its_time_is_up_when_the_config_says(self, tmp_path: Path) -> None:
        async with Site(lambda _, answering: answering.gone()) as site:
            done = await run(tmp_path, {"url": base(site) + "/", "timeout": 50})
        assert done.error is not None
        assert done.error["kind"] == "timeout"


class TestWhereTo:
    async def test_what_data_decide_on_is_never_this_machine(self, tmp_path: Path) -> None:
        async with Site(echo) as site:
            for url in ("${input.url}", "http://${input.host}/", "http://127.0.0.1:${input.port}/"):
                given = {"url": base(site) + "/", "host": f"127.0.0.1:{site.port}", "port": site.port}
                done = await run(tmp_path, {"url": url}, given)
                assert done.error is not None
                assert (done.error["kind"], site.asked) == ("arguments", []), url
                assert "is not asked" in done.error["message"]

    async def test_unless_the_step_says_so(self, tmp_path: Path) -> None:
        async with Site(echo) as site:
            config = {"url": "${input.url}", "allow_private": True}
            assert (await run(tmp_path, config, {"url": base(site) + "/"})).success

    async def test_data_after_the_host_cannot_change_it(self, tmp_path: Path) -> None:
        async with Site(echo) as site:
            for path in ("@evil.example/", "..//evil.example", "//evil.example"):
                done = await run(tmp_path, {"url": base(site) + "/${input.path}"}, {"path": path})
                assert done.success, done.error
            assert len(site.asked) == 3

    async def test_in_production_it_is_a_fault_before_anything_runs(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="not asked in production"):
            await run(
                tmp_path, {"url": "http://127.0.0.1:1/"}, project="mcpServers: {}\nenvironment: production\n"
            )

    async def test_redirects_of_such_an_address_stay_there(self, tmp_path: Path) -> None:
        async with Site(echo) as other:
            away = base(other).replace("127.0.0.1", "localhost")
            async with Site(lambda _, answering: answering.give(302, b"", location=away)) as site:
                done = await run(tmp_path, {"url": base(site) + "/"})
            assert done.error is not None
            assert (done.error["status"], other.asked) == (302, [])


class TestSecrets:
    CONFIG: ClassVar[dict[str, Any]] = {"headers": {"Authorization": "Bearer ${input.token}"}}

    async def test_an_answer_to_a_secret_is_as_secret(self, tmp_path: Path) -> None:
        async with Site(echo) as site:
            token = {"token": Labelled("tok-1234567890", SECRET)}
            done = await run(tmp_path, {"url": base(site) + "/", **self.CONFIG}, token)
            assert site.asked[0].headers["authorization"] == "Bearer tok-1234567890"
        assert done.label.confidentiality is Confidentiality.secret, "it could be its echo"

    async def test_a_policy_keeps_secrets_from_going_out(self, tmp_path: Path) -> None:
        when = "{tool: 'builtin://http', label: {confidentiality: secret}}"
        rules = f"policies: [{{name: p, when: {when}, then: deny}}]\n"
        async with Site(echo) as site:
            config = {"url": base(site) + "/", **self.CONFIG}
            secret = await run(
                tmp_path, config, {"token": Labelled("tok-1234567890", SECRET)}, project=PROJECT + rules
            )
            plain = await run(tmp_path, config, {"token": "x"}, project=PROJECT + rules)
        assert secret.error is not None
        assert (secret.error["kind"], plain.success, len(site.asked)) == ("denied", True, 1)


async def test_the_audit_knows_of_the_request_and_not_what_was_in_it(tmp_path: Path) -> None:
    async with Site(echo) as site:
        await run(tmp_path, {"url": base(site) + "/", "params": {"q": "needle"}})
    (log,) = (tmp_path / ".luthier" / "audit").glob("*.jsonl")
    assert "builtin://http" in log.read_text()
    assert "needle" not in log.read_text()


async def test_python_may_ask_public_addresses_only(tmp_path: Path) -> None:
    (tmp_path / "luthier.yaml").write_text(PROJECT)
    async with Site(echo) as site, Runtime.open(tmp_path / "luthier.yaml") as rt:
        result = await rt.call("builtin://http", url=base(site) + "/")
    assert (result.is_error, site.asked) == (True, [])
