"""What a person is asked: to approve a call as it will be made, or to answer a question of a run.

Both show each value with its origin. An approval is for one call only. What it is bound to is a hash over the
tool's definition, the arguments, all labels, the callers, the run and the step: where one of them is another,
it is another call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.govern.canonical import definition_hash
from luthier.govern.digests import arguments_digest, tag_of
from luthier.govern.records import Tag
from luthier.taint import Confidentiality, Labelled, escape_pointer
from luthier.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from luthier.context import CallContext
    from luthier.govern.checks import Decision
    from luthier.govern.guard import GateCall
    from luthier.taint import Label
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
    """What waits for a person, or has been decided and not been used yet. Times are Unix seconds.

    One that has expired is kept until the run that has asked goes on.

    `what`: a call, a question of a step (`hitl`), or what a server asks back (`input`). Of questions
    `arguments` are what is shown beside the `prompt`, `said` is the label of that, `schema` is what an answer
    must fit (None: it is yes or no), and `approvers` are those who may decide besides the operator. `control`
    is the label of the branch that it stands in. `token` is the SHA-256 of one that decides in its place.
    """

    id: str
    binding: str
    what: Literal["call", "hitl", "input"] = "call"
    uri: str
    call: str
    principals: tuple[str, ...]
    run: str
    root: str = ""
    step: str
    arguments: tuple[Argument, ...]
    more: int = 0  # arguments that are not shown
    control: Tag | None = None
    prompt: str = ""
    said: Tag | None = None
    schema: dict[str, Any] | None = None
    approvers: tuple[str, ...] = ()
    durable: bool = False
    rule: str
    place: str
    reason: str
    asked: float
    expires: float
    token: str = ""
    state: Literal["waiting", "approved", "denied", "expired"] = "waiting"
    answer: Any = None
    why: str = ""
    by: str = ""
    via: str = ""
    decided: float = 0.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Yes or no, the answer where one is wanted, and why."""

    approved: bool
    value: Any = msgspec.UNSET
    why: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a step asks people, before it is a request. `life` is seconds; `uri` is of the tool that asks."""

    what: Literal["hitl", "input"]
    prompt: Labelled[str]
    shown: Labelled[Any]
    schema: dict[str, Any] | None = None
    approvers: tuple[str, ...] = ()
    life: float
    uri: str = ""
    call: str = ""
    rule: str
    place: str = ""
    mark: str = ""  # tells it from another one of the same words


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
    return _request(
        wanted.context,
        wanted.arguments,
        redact,
        id=id,
        binding=binding_of(call),
        uri=str(wanted.uri),
        call=wanted.id,
        rule=decision.rule,
        place=decision.place,
        reason=decision.reason,
        asked=now,
        expires=expires,
    )


def asked_of(
    question: Question, context: CallContext, *, id: str, now: float, redact: Callable[[str], str] = str
) -> Request:
    """The request for a question of a step."""
    prompt = question.prompt
    secret = prompt.whole.confidentiality is Confidentiality.secret
    text = WITHHELD if secret else redact(prompt.value)
    bound = (
        "question/1",
        [question.what, question.uri, prompt.value, question.schema, question.mark],
        arguments_digest(question.shown.value),
        [prompt.whole.to_json(), question.shown.whole.to_json(), context.control.to_json()],
        [context.principals, context.run, context.step, context.attempt],
    )
    return _request(
        context,
        question.shown,
        redact,
        id=id,
        binding=hashlib.sha256(_encode_in_order(bound)).hexdigest(),
        what=question.what,
        uri=question.uri,
        call=question.call,
        prompt=_cut(escape(text)),
        said=tag_of(prompt.whole),
        schema=question.schema,
        approvers=question.approvers,
        rule=question.rule,
        place=question.place,
        reason="",
        asked=now,
        expires=now + question.life,
    )


def _request(
    context: CallContext, shown: Labelled[Any], redact: Callable[[str], str], **rest: Any
) -> Request:
    """Whose it is and what is shown of it: the same of every request."""
    leaves = list(leaves_of(shown))
    return Request(
        principals=context.principals,
        run=context.run,
        root=context.root,
        step=context.step,
        durable=context.durable,
        arguments=tuple(_argument(at, value, label, redact) for at, value, label in leaves[:MOST]),
        more=max(len(leaves) - MOST, 0),
        control=tag_of(context.control),
        **rest,
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
        shown = _cut(escape(redact(_encode(value).decode())))
    return Argument(at=escape(at), shown=shown, label=tag_of(label))


def _cut(text: str) -> str:
    over = len(text) - LONGEST
    return text if over <= 0 else f"{text[:LONGEST]}… (and {over} more characters)"


def _definition(tool: Tool) -> str:
    """The hash of the whole definition, as pins have it."""
    told = tool.raw or {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    return definition_hash(told)
