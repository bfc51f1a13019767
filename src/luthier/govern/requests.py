"""What a person is asked to approve: a call as it will be made, where each argument came from, and why.

An approval is for one call only. What it is bound to is a hash over the tool's definition, the arguments,
all labels, the callers, the run and the step: where one of them is another, it is another call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.govern.canonical import definition_hash
from luthier.govern.digests import arguments_digest, tag_of
from luthier.govern.records import Tag
from luthier.taint import Confidentiality, escape_pointer
from luthier.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from luthier.govern.checks import Decision
    from luthier.govern.guard import GateCall
    from luthier.taint import Label, Labelled
    from luthier.tools import Tool

MOST = 200
"""Arguments that are shown; of further ones only the number."""

LONGEST = 20_000
"""Characters of one argument that are shown; of further ones only the number."""

WITHHELD = "(secret)"

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf of the arguments: its JSON Pointer, its JSON text made safe to show, and its label."""

    at: str
    shown: str
    label: Tag | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person, or has been decided upon and not been made yet. Times are Unix seconds.

    `control` is the label of the branch that the call stands in.
    """

    id: str
    binding: str
    uri: str
    call: str
    principals: tuple[str, ...]
    run: str
    step: str
    arguments: tuple[Argument, ...]
    more: int = 0  # arguments that are not shown
    control: Tag | None = None
    rule: str
    place: str
    reason: str
    asked: float
    expires: float
    state: Literal["waiting", "approved", "denied"] = "waiting"
    by: str = ""
    via: str = ""
    decided: float = 0.0


def request_of(
    call: GateCall,
    decision: Decision,
    *,
    id: str,
    now: float,
    expires: float,
    redact: Callable[[str], str] = str,
) -> Request:
    """The request for a call; `redact` takes known secrets out of what is shown."""
    wanted = call.call
    context = wanted.context
    leaves = list(leaves_of(wanted.arguments))
    return Request(
        id=id,
        binding=binding_of(call),
        uri=str(wanted.uri),
        call=wanted.id,
        principals=context.principals,
        run=context.run,
        step=context.step,
        arguments=tuple(_argument(at, value, label, redact) for at, value, label in leaves[:MOST]),
        more=max(len(leaves) - MOST, 0),
        control=tag_of(context.control),
        rule=decision.rule,
        place=decision.place,
        reason=decision.reason,
        asked=now,
        expires=expires,
    )


def binding_of(call: GateCall) -> str:
    """The hash that an approval is bound to."""
    tool, wanted = call.tool, call.call
    if tool is None:
        raise RuntimeError("the tool must be looked up before its call is approved")
    arguments, context = wanted.arguments, wanted.context
    parts = {pointer: label.to_json() for pointer, label in arguments.parts.items()}
    bound = (
        "approval/1",
        str(wanted.uri),
        _definition(tool),
        call.ledger.digest or arguments_digest(arguments.value),
        [arguments.label.to_json(), parts, context.control.to_json()],
        context.principals,
        context.run,
        context.step,
    )
    return hashlib.sha256(_encode_in_order(bound)).hexdigest()


def leaves_of(value: Labelled[Any], at: str = "") -> Iterator[tuple[str, Any, Label]]:
    """Every leaf with its pointer and label; an empty list or mapping is one."""
    inner = value.value
    if isinstance(inner, Mapping) and inner:
        for key, item in inner.items():
            yield from leaves_of(value.member(key, item), f"{at}/{escape_pointer(str(key))}")
    elif isinstance(inner, (list, tuple)) and inner:
        for index, item in enumerate(inner):
            yield from leaves_of(value.member(index, item), f"{at}/{index}")
    elif at:
        yield at, inner, value.whole


def read_request(data: Any) -> Request:
    """A request as it was stored. Raises ValueError for anything else."""
    try:
        return msgspec.convert(data, Request)
    except msgspec.ValidationError as error:
        raise ValueError(f"it is no request for an approval: {error}") from None


def _argument(at: str, value: Any, label: Label, redact: Callable[[str], str]) -> Argument:
    if label.confidentiality is Confidentiality.secret:
        shown = WITHHELD
    else:
        shown = escape(redact(_encode(value).decode()))
        if len(shown) > LONGEST:
            shown = f"{shown[:LONGEST]}… (and {len(shown) - LONGEST} more characters)"
    return Argument(at=escape(at), shown=shown, label=tag_of(label))


def _definition(tool: Tool) -> str:
    """The hash of the whole definition, as pins have it."""
    told = tool.raw or {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    return definition_hash(told)
