"""The guard against labels that are not known: a call that carries one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.govern.guard import GateCall, Ledger, said
from luthier.taint import Confidentiality, Integrity, Label, Labelled

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from luthier.govern.guard import Next, Up
    from luthier.tools import ToolCall

WORST = Label(Integrity.untrusted, Confidentiality.secret)


def known_label(call: ToolCall) -> Label | None:
    """The join of all labels of a call, None where one of them is no label."""
    arguments, control = call.arguments, call.context.control
    if type(arguments) is not Labelled or type(arguments.parts) is not dict:
        return None
    if not (_is_known(arguments.label) and _is_known(control)):
        return None
    if arguments.parts and not all(map(_is_known, arguments.parts.values())):
        return None
    return arguments.whole.join(control)


def unknown(call: ToolCall) -> GateCall:
    """A call with an unknown label on its way to being refused."""
    return GateCall(
        msgspec.structs.replace(
            call,
            arguments=Labelled(getattr(call.arguments, "value", None), WORST),
            context=msgspec.structs.replace(call.context, control=WORST),
        ),
        WORST,
        Ledger(unlabelled=True),
    )


def labelled(call: GateCall, inner: Next) -> Awaitable[Up]:
    """Refuse a call whose labels are not known."""
    if not call.ledger.unlabelled:
        return inner(call)
    refusal = call.refuse(
        "denied",
        f"A label on the arguments of {call.call.uri} is not known, so the answer is no.",
        rule="labels",
        place="the labels of the call",
        hint="Labels are made with luthier.Label and read with Label.from_json.",
    )
    return said(refusal)


def _is_known(label: object) -> bool:
    return (
        type(label) is Label
        and type(label.integrity) is Integrity
        and type(label.confidentiality) is Confidentiality
        and type(label.sources) is frozenset
    )
