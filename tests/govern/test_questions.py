"""Questions to people: who may answer what, with which token, once, and until when."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from typing import Any

import msgspec
import pytest

from luthier.clock import FakeClock, settle
from luthier.connect import MemoryState
from luthier.context import CallContext
from luthier.errors import LuthierError, NotFoundError, Refused
from luthier.govern import Approvals, Asked, Decided, Desk, MemoryAudit, Question, Request
from luthier.govern.approvals import KEPT
from luthier.taint import Labelled

LONG = 30.0
"""Seconds after which a test has hung."""

FRUIT = {"enum": ["pear", "plum"]}


class Office:
    """A desk, and one question on it that a client's run has raised."""

    def __init__(self, state: MemoryState | None = None) -> None:
        self.clock = FakeClock()
        self.state = state or MemoryState()
        self.log = MemoryAudit()
        self.approvals = Approvals(self.state, self.log, self.clock)
        self.desk = Desk(self.approvals, self.log, self.clock)

    async def asked(self, *approvers: str, schema: dict[str, Any] | None = None, **context: Any) -> Request:
        question = Question(
            what="hitl",
            prompt=Labelled("Which?"),
            shown=Labelled({"a": 1}),
            schema=schema,
            approvers=approvers,
            life=60,
            rule="step s",
        )
        given = {"principals": ("client:ann", "ensemble:e"), "run": "r", "root": "r", "step": "s", **context}
        return await self.desk.ask(question, CallContext(**given))

    async def decided(self, request: Request) -> Request:
        return await self.approvals.get(request.id)


async def test_a_question_is_audited_when_it_is_asked_and_when_it_is_decided() -> None:
    office = Office()
    request = await office.asked()
    await office.approvals.approve(request.id, by="operator", via="cli, jo")
    asked, decided = office.log.records
    assert isinstance(asked, Asked)
    assert (asked.approval, asked.request, asked.run, asked.step) == (request.id, request.binding, "r", "s")
    assert isinstance(decided, Decided)
    assert (decided.decision, decided.by, decided.via) == ("approved", "operator", "cli, jo")


async def test_a_question_that_nobody_answers_in_time_is_void_and_that_is_audited() -> None:
    office = Office()
    request = await office.asked()
    await office.clock.advance(61)
    with pytest.raises(NotFoundError):
        await office.approvals.approve(request.id)
    decided = office.log.records[-1]
    assert isinstance(decided, Decided)
    assert (decided.approval, decided.decision, decided.by) == (request.id, "expired", "")
    assert await office.approvals.list() == ()
    assert len(office.log.records) == 2


async def test_one_that_has_suspended_a_run_is_told_of_as_expired_until_that_goes_on() -> None:
    office = Office()
    request = await office.asked(durable=True)
    token = await office.approvals.token(request.id)
    await office.clock.advance(61)
    for _ in range(2):
        (expired,) = await office.approvals.list()
        assert (expired.id, expired.state, expired.token) == (request.id, "expired", "")
    with pytest.raises(Refused, match="has expired"):
        await office.approvals.approve(request.id)
    with pytest.raises(NotFoundError):
        await office.approvals.approve(token)
    assert len(office.log.records) == 2, "that is audited once"
    assert (await office.asked(durable=True)).id != request.id, "it answers no question that is put anew"
    await office.desk.withdraw("r")
    assert await office.approvals.list() == ()


async def test_one_whose_run_is_never_gone_on_with_is_forgotten_some_day() -> None:
    office = Office()
    await office.asked(durable=True)
    await office.clock.advance(60 + KEPT - 1)
    assert len(await office.approvals.list()) == 1
    await office.clock.advance(1)
    assert await office.approvals.list() == ()


@pytest.mark.parametrize(
    ("approvers", "by", "roles", "may"),
    [
        ((), "operator", (), True),
        ((), "client:bob", (), False),
        ((), "client:bob", ("run",), False),
        ((), "client:bob", ("approve",), True),
        ((), "client:bob", ("admin",), True),
        ((), "client:ann", ("approve", "admin"), False),
        (("bob",), "client:bob", (), True),
        (("client:bob",), "client:bob", (), True),
        (("bob",), "client:eve", ("approve",), False),
        (("bob",), "operator", (), True),
        (("lawyers",), "client:eve", ("lawyers",), True),
        (("ann",), "client:ann", (), False),
        (("caller",), "client:ann", (), True),
        (("caller",), "ensemble:e", (), False),
        (("caller",), "client:bob", ("admin",), False),
        (("caller", "approve"), "client:bob", ("approve",), True),
        ((), "", (), False),
    ],
)
async def test_who_may_decide(
    approvers: tuple[str, ...],
    by: str,
    roles: tuple[str, ...],
    may: bool,  # noqa: FBT001
) -> None:
    for word in ("approve", "deny", "token"):
        office = Office()
        request = await office.asked(*approvers)
        deciding = getattr(office.approvals, word)(request.id, by=by, roles=roles)
        if may:
            await deciding
        else:
            with pytest.raises(Refused, match="may not decide"):
                await deciding
            assert (await office.decided(request)).state == "waiting"


class TestTokens:
    async def test_a_token_decides_once_and_only_its_hash_is_kept(self) -> None:
        office = Office()
        request = await office.asked()
        token = await office.approvals.token(request.id)
        assert token.startswith("hitl_")
        assert len(token) >= len("hitl_") + 43, "256 bits"
        row = office.state.get("approvals", request.id)
        assert row is not None
        assert row["token"] == hashlib.sha256(token.encode()).hexdigest()
        assert token not in msgspec.json.encode(row).decode()
        decided = await office.approvals.approve(token, by="client:eve")
        assert (decided.state, decided.by) == ("approved", "client:eve")
        for word in ("approve", "deny", "get"):
            with pytest.raises(NotFoundError, match="no request with this token"):
                await getattr(office.approvals, word)(token)

    async def test_whoever_raised_it_cannot_use_a_token_either(self) -> None:
        office = Office()
        request = await office.asked()
        token = await office.approvals.token(request.id)
        with pytest.raises(Refused, match="raised itself"):
            await office.approvals.approve(token, by="client:ann")

    async def test_another_token_voids_the_one_before(self) -> None:
        office = Office()
        request = await office.asked()
        first, second = [await office.approvals.token(request.id) for _ in range(2)]
        with pytest.raises(NotFoundError):
            await office.approvals.approve(first)
        assert (await office.approvals.deny(second, why="No.")).why == "No."

    async def test_there_is_no_token_for_what_is_decided_meanwhile(self) -> None:
        class Busy(MemoryState):
            def swap(self, kind: str, key: str, expected: Any, value: Any) -> bool:
                if expected is not None:
                    super().swap(kind, key, expected, {**expected, "state": "denied"})
                return super().swap(kind, key, expected, value)

        office = Office(Busy())
        request = await office.asked()
        with pytest.raises(Refused, match="decided already"):
            await office.approvals.token(request.id)

    async def test_there_is_no_token_for_what_has_been_decided(self) -> None:
        office = Office()
        request = await office.asked()
        await office.approvals.approve(request.id)
        with pytest.raises(Refused, match="decided already"):
            await office.approvals.token(request.id)

    @pytest.mark.parametrize("token", ["hitl_", "hitl_" + "a" * 43])
    async def test_what_is_no_token_decides_nothing(self, token: str) -> None:
        office = Office()
        await office.asked()
        with pytest.raises(NotFoundError):
            await office.approvals.approve(token)


class TestAnswers:
    async def test_an_answer_is_checked_against_the_schema(self) -> None:
        office = Office()
        request = await office.asked(schema=FRUIT)
        with pytest.raises(Refused, match="does not fit"):
            await office.approvals.approve(request.id, answer="stone")
        with pytest.raises(Refused, match="wants an answer"):
            await office.approvals.approve(request.id)
        assert (await office.decided(request)).state == "waiting"
        assert (await office.approvals.approve(request.id, answer="plum")).answer == "plum"

    async def test_yes_or_no_takes_no_answer(self) -> None:
        office = Office()
        request = await office.asked()
        with pytest.raises(Refused, match="takes no answer"):
            await office.approvals.approve(request.id, answer="plum")

    async def test_a_schema_that_cannot_be_used_takes_none(self) -> None:
        office = Office()
        request = await office.asked(schema={"type": "nonsense"})
        with pytest.raises(Refused, match="no answer can be checked"):
            await office.approvals.approve(request.id, answer=1)

    async def test_of_many_who_decide_at_once_one_has(self) -> None:
        office = Office()
        request = await office.asked(schema=FRUIT)
        words = ["pear", "plum"] * 5

        async def one(word: str) -> bool:
            try:
                await office.approvals.approve(request.id, answer=word)
            except LuthierError:
                return False
            return True

        assert sum(await asyncio.gather(*map(one, words))) == 1


class TestSuspended:
    async def test_a_run_that_can_be_suspended_finds_the_question_that_it_has_put_before(self) -> None:
        office = Office()
        first = await office.asked(durable=True)
        assert await office.asked(durable=True) == first
        await office.approvals.approve(first.id)
        assert (await office.asked(durable=True)).state == "approved"
        assert (await office.asked(durable=True, attempt=2)).id != first.id
        assert (await office.asked(durable=True, step="s[1]")).id != first.id

    async def test_what_a_run_and_those_inside_have_asked_is_taken_back_when_it_is_over(self) -> None:
        office = Office()
        kept = await office.asked()
        await office.asked(step="t")
        await office.asked(run="inner")
        other = await office.asked(run="another", root="another")
        await office.desk.withdraw("r", keep=[kept.id])
        assert {one.id for one in await office.approvals.list()} == {kept.id, other.id}
        await office.desk.withdraw("r")
        assert len(await office.approvals.list()) == 2, "what was kept is for whoever goes on with the run"

    async def test_what_a_run_that_is_left_has_asked_stays(self) -> None:
        office = Office()
        request = await office.asked()
        office.desk.forget("r")
        await office.desk.withdraw("r")
        assert await office.approvals.list() == (request,)

    async def test_what_was_being_put_when_its_step_was_called_off_is_taken_back_too(self) -> None:
        entered, free = threading.Event(), threading.Event()

        class Slow(MemoryState):
            def swap(self, *given: Any) -> bool:
                entered.set()
                free.wait(LONG)
                return super().swap(*given)

        office = Office(Slow())
        putting = asyncio.create_task(office.asked())
        await asyncio.to_thread(entered.wait, LONG)
        putting.cancel()
        await settle()
        assert not putting.done(), "it waits until it is known what lies there"
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await putting
        await office.desk.withdraw("r")
        assert await office.approvals.list() == ()

    async def test_what_cannot_be_read_any_more_is_left_alone(self) -> None:
        office = Office()
        request = await office.asked()
        office.state.put("approvals", request.id, {"id": 3})
        await office.desk.withdraw("r")
        assert office.state.get("approvals", request.id) == {"id": 3}
