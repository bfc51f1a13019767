"""The context of a call: who calls, innermost last."""

from __future__ import annotations

import pytest

from luthier.context import OPERATOR, CallContext
from luthier.taint import TRUSTED, UNTRUSTED


def test_without_anything_said_the_operator_calls_on_a_trusted_branch() -> None:
    context = CallContext()
    assert context.principals == (OPERATOR,)
    assert context.principal == OPERATOR
    assert context.control == TRUSTED
    assert context.deadline is None


def test_within_adds_the_innermost_caller_and_keeps_the_rest() -> None:
    outer = CallContext(run="r", step="s", attempt=2, deadline=9.0, control=UNTRUSTED)
    inner = outer.within("ensemble:digest").within("reviewer")
    assert inner.principals == (OPERATOR, "ensemble:digest", "reviewer")
    assert inner.principal == "reviewer"
    assert (inner.run, inner.step, inner.attempt, inner.deadline, inner.control) == (
        "r",
        "s",
        2,
        9.0,
        UNTRUSTED,
    )
    assert outer.principals == (OPERATOR,)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        CallContext().run = "other"  # type: ignore[misc]
