"""A call of which one label is not known is refused, wherever that label stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given

from luthier.govern.guard import GateCall, Ledger
from luthier.govern.labels import WORST, known_label, labelled, unknown
from luthier.taint import TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Labelled
from luthier.tools import Refusal
from tests.govern.kit import intended
from tests.taint.made import labels

if TYPE_CHECKING:
    from luthier.govern.guard import Up
    from luthier.tools import ToolCall

URI = "mcp://git/log"
NONE: list[Any] = [
    None,
    "untrusted",
    {},
    (Integrity.trusted, Confidentiality.public, frozenset()),
    Label(cast("Any", 0)),
    Label(cast("Any", "untrusted")),
    Label(confidentiality=cast("Any", 2)),
    Label(sources=cast("Any", [])),
]


def with_arguments(arguments: Any) -> ToolCall:
    return msgspec.structs.replace(intended(URI), arguments=arguments)


@given(labels, labels, labels)
def test_the_label_of_a_call_joins_its_arguments_their_parts_and_its_branch(
    whole: Label, part: Label, branch: Label
) -> None:
    call = intended(URI, {"a": 1}, label=whole, parts={"/a": part}, control=branch)
    assert known_label(call) == whole.join(part).join(branch)


@pytest.mark.parametrize("label", NONE)
def test_one_label_that_is_none_is_enough(label: Any) -> None:
    assert known_label(intended(URI, label=label)) is None
    assert known_label(intended(URI, control=label)) is None
    assert known_label(intended(URI, parts={"/a": UNTRUSTED, "/b": label})) is None
    assert known_label(intended(URI, parts={"/a": label, "/b": UNTRUSTED})) is None


@pytest.mark.parametrize(
    "arguments", [None, {}, {"a": 1}, Labelled({}, TRUSTED, cast("Any", [("/a", TRUSTED)]))]
)
def test_arguments_without_labels_have_none_that_is_known(arguments: Any) -> None:
    assert known_label(with_arguments(arguments)) is None


def test_on_its_way_to_the_refusal_such_a_call_carries_the_worst_label_everywhere() -> None:
    call = intended(URI, {"a": 1}, label=cast("Any", None), parts={"/a": TRUSTED}, run="r9")
    marked = unknown(call)
    assert marked.call == msgspec.structs.replace(
        call,
        arguments=Labelled({"a": 1}, WORST),
        context=msgspec.structs.replace(call.context, control=WORST),
    )
    assert marked.label is WORST
    assert marked.ledger.unlabelled
    bare: Labelled[Any] = Labelled(None, WORST)
    assert unknown(with_arguments({"a": 1})).call.arguments == bare
    assert all(label <= WORST for label in (TRUSTED, UNTRUSTED))


async def inner(call: GateCall) -> Up:
    return call.refuse("denied", "The next guard was asked.", rule="r", place="p", hint="h")


async def test_it_is_denied_and_the_next_guard_is_not_asked() -> None:
    refusal = await labelled(unknown(with_arguments(None)), inner)
    assert isinstance(refusal, Refusal)
    assert (refusal.kind, refusal.rule, str(refusal.uri)) == ("denied", "labels", URI)
    assert "is not known" in refusal.reason
    assert "luthier.Label" in refusal.hint


async def test_a_call_with_labels_passes() -> None:
    call = GateCall(intended(URI), TRUSTED, Ledger())
    assert await labelled(call, inner) == await inner(call)
