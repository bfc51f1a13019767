"""Arguments and results are in the log only if somebody asks for them, and then without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock
from luthier.govern import Intent, MemoryAudit, Outcome
from luthier.govern.digests import LONGEST_TEXT, kept_text
from luthier.govern.guard import GateCall, Ledger, fold
from luthier.govern.recorder import AuditRecorder
from luthier.redaction import known
from luthier.taint import TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label
from luthier.tools import Reply, ToolResult
from tests.govern.kit import intended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.govern.guard import Up

SECRET = Label(Integrity.trusted, Confidentiality.secret, frozenset())


@pytest.fixture
def password() -> Iterator[str]:
    known.add("correct horse battery staple")
    yield "correct horse battery staple"
    known.forget()


async def recorded(*keep: str, text: str = "fine", label: Label = TRUSTED) -> tuple[str, str]:
    """What the log holds of the arguments and of the result of one call."""
    log = MemoryAudit()
    recorder = AuditRecorder(log, FakeClock(), keep=keep)

    async def carry(call: GateCall) -> Up:
        reply = Reply(blocks=[{"type": "text", "text": text}])
        return ToolResult(uri=call.call.uri, call_id=call.call.id, reply=reply, duration=1.0, label=label)

    wanted = intended("mcp://bank/pay", {"note": text})
    await fold([recorder.carried], carry)(GateCall(wanted, label, Ledger()))
    (sent,) = [record.sent for record in log.records if isinstance(record, Intent)]
    (got,) = [record.got for record in log.records if isinstance(record, Outcome)]
    return sent, got


async def test_neither_is_kept_by_default() -> None:
    assert await recorded() == ("", "")


async def test_each_is_kept_where_it_is_asked_for() -> None:
    assert await recorded("arguments") == ('{"note":"fine"}', "")
    assert await recorded("results") == ("", '"fine"')
    assert await recorded("arguments", "results") == ('{"note":"fine"}', '"fine"')


async def test_secrets_in_them_are_blotted_out(password: str) -> None:
    for text in await recorded("arguments", "results", text=f"my password is {password}"):
        assert password not in text
        assert "my password is" in text


async def test_what_is_labelled_secret_is_not_kept() -> None:
    assert await recorded("arguments", "results", label=SECRET) == ("(labelled secret)",) * 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, "x"]}, '{"a":[1,null,"x"]}'),
        ("x" * (LONGEST_TEXT - 2), '"' + "x" * (LONGEST_TEXT - 2) + '"'),
        ("x" * LONGEST_TEXT, '"' + "x" * (LONGEST_TEXT - 1) + "… and 3 more"),
        ({"a": object()}, "(cannot be written as JSON)"),
    ],
)
def test_a_value_is_kept_as_text_of_bounded_length(value: Any, text: str) -> None:
    kept = kept_text(value, UNTRUSTED)
    assert kept == text or (len(text) > LONGEST_TEXT and kept.endswith("more"))
