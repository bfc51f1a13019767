"""Endorsing through the gate: it is written down by whom and why, and nobody who is off does it."""

from __future__ import annotations

import pytest

from luthier.context import CallContext
from luthier.errors import AuditError, Refused
from luthier.govern import Endorsed, MemoryAudit
from luthier.govern.digests import arguments_digest
from luthier.taint import UNTRUSTED, Confidentiality, Integrity, Label, Labelled, Source
from luthier.tools.closed import read_closed
from luthier.trace import Trace
from tests.govern.kit import Gate

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))
TRACE = Trace.fresh()
CONTEXT = CallContext(principals=("operator", "ensemble:x"), run="r1", step="s1", attempt=2, trace=TRACE)
STARS = read_closed({"integer": [0, 5]})


def test_it_is_written_down() -> None:
    gate = Gate()
    done = gate.gateway.endorse(Labelled(3, WEB), STARS, "Stars are harmless.", CONTEXT)
    assert done == Labelled(
        3,
        Label(Integrity.trusted, Confidentiality.private, WEB.sources | {Source("", "endorse", "r1/s1")}),
    )
    (record,) = gate.log.records
    assert isinstance(record, Endorsed)
    assert (record.verdict, record.type, record.reason) == (
        "endorsed",
        "a whole number from 0 to 5",
        "Stars are harmless.",
    )
    assert (record.principals, record.run, record.step) == (CONTEXT.principals, "r1", "s1")
    assert (record.attempt, record.value, record.trace) == (2, arguments_digest(3), TRACE.id)
    assert record.label is not None
    assert record.label.sources == ("web/fetch#c0",)


@pytest.mark.parametrize("value", [6, -1, "3", 2.5, None, True, {"a": 1}, object()])
def test_what_is_not_of_the_type_is_refused_and_that_is_written_down(value: object) -> None:
    gate = Gate()
    with pytest.raises(Refused, match="a whole number from 0 to 5") as caught:
        gate.gateway.endorse(Labelled(value, WEB), STARS, "Stars.", CONTEXT)
    assert (caught.value.refusal_kind, caught.value.rule) == ("arguments", "endorse")
    assert "closed type" in (caught.value.hint or "")
    assert caught.value.place == "step s1"
    (record,) = gate.log.records
    assert isinstance(record, Endorsed)
    assert record.verdict == "refused"


def test_outside_of_a_step_a_refusal_names_the_function() -> None:
    with pytest.raises(Refused) as caught:
        Gate().gateway.endorse(Labelled(6, WEB), STARS, "Stars.", CallContext())
    assert caught.value.place == "Runtime.endorse"


def test_what_cannot_be_written_down_is_not_endorsed() -> None:
    gate = Gate(audit=MemoryAudit(fails="endorsed"))
    with pytest.raises(AuditError):
        gate.gateway.endorse(Labelled(3, UNTRUSTED), STARS, "Stars.", CONTEXT)


def test_who_is_turned_off_endorses_nothing() -> None:
    gate = Gate(switched=True)
    gate.switch.off = frozenset({"agent:ensemble:x"})
    with pytest.raises(Refused, match="turned off"):
        gate.gateway.endorse(Labelled(3, WEB), STARS, "Stars.", CONTEXT)
    assert gate.log.records == []
