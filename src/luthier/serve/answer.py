"""What a caller from outside is given of a run or a result, and what is kept from it. Pure.

Nothing that is labelled secret leaves, and of a failure only what its caller could have caused or can read:
where servers stand and what they are started with is the operator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import CallerError, InputError, Refused
from luthier.redaction import redact
from luthier.taint import UNTRUSTED, Confidentiality, Label, join
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from luthier.errors import LuthierError
    from luthier.spec import McpTrigger
    from luthier.taint import Source
    from luthier.tools import ToolResult
    from luthier.workflows import Run

LABEL = "luthier/label"
RUN = "luthier/run"
"""Keys of `_meta`."""

_INNER = frozenset({"connect", "code", "denied", "approval", "unknown"})
"""Kinds of failure whose words are about the inside of the house."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Content blocks, the structured value (UNSET: none), and the label of both.

    `rejected`: the arguments do not fit, so nothing was started.
    """

    blocks: list[dict[str, Any]]
    structured: Any = msgspec.UNSET
    is_error: bool = False
    label: Label = UNTRUSTED
    run: str = ""
    rejected: bool = False

    @property
    def meta(self) -> dict[str, Any]:
        """What goes along in `_meta`: the label without its call ids, and the run's id."""
        told = self.label.to_json()
        told["sources"] = sorted({_named(source) for source in self.label.sources})
        return {LABEL: told, **({RUN: self.run} if self.run else {})}


def _named(source: Source) -> str:
    """Tools of this process have no server."""
    return f"{source.server}:{source.tool}" if source.server else source.tool


def of_run(run: Run, trigger: McpTrigger) -> Answer:
    """A run as its trigger promises it."""
    if not run.success:
        return _failed(run)
    if run.label.confidentiality is Confidentiality.secret:
        return _withheld(run.id)
    schema, output = trigger.output_schema, run.output
    if schema is not None and (faults := Schema(schema).faults(output)):
        said = f"The output of {run.ensemble} is not what it promises: {faults[0]}"
        return error(said, label=run.label, run=run.id)
    output = sayable(output)
    structured = msgspec.UNSET if schema is None else output
    return Answer(blocks=[_text(output)], structured=structured, label=run.label, run=run.id)


def of_result(result: ToolResult) -> Answer:
    """A tool's result as it came."""
    if result.label.confidentiality is Confidentiality.secret:
        return _withheld()
    structured = result.reply.structured
    if structured is not msgspec.UNSET:
        structured = sayable(structured)
    return Answer(
        blocks=sayable(result.blocks), structured=structured, is_error=result.is_error, label=result.label
    )


def of_error(fault: LuthierError | RecursionError) -> Answer:
    """What stopped a call before it gave anything."""
    if isinstance(fault, RecursionError):
        return error("The call failed: its values are nested too deeply.")
    if isinstance(fault, InputError):
        return error("\n".join(str(one) for one in fault.faults), rejected=True)
    if isinstance(fault, Refused) and fault.refusal_kind == "arguments":
        return error(fault.reason, rejected=True)
    if isinstance(fault, CallerError):
        return error(fault.message)
    kind = fault.refusal_kind if isinstance(fault, Refused) else fault.kind
    return error(f"The call failed [{kind}].")


def error(text: str, *, label: Label = UNTRUSTED, run: str = "", rejected: bool = False) -> Answer:
    """An answer that says what went wrong."""
    blocks = [_text(sayable(redact(text)))]
    return Answer(blocks=blocks, is_error=True, label=label, run=run, rejected=rejected)


def _failed(run: Run) -> Answer:
    label = join([run.label, *(step.label for step in run.steps.values() if step.failed)])
    fault = run.error or {}
    where = f" at step {fault['step']}" if fault.get("step") else ""
    kind = str(fault.get("kind", "code"))
    told = is_told(kind, label)
    said = f": {fault.get('message', '')}" if told else ""
    # Without the words of the failure nothing of what it came from is in it.
    return error(f"Execution failed{where} [{kind}]{said}", label=label if told else UNTRUSTED, run=run.id)


def is_told(kind: str, label: Label) -> bool:
    """Whether the words of a failure of that kind, whose steps have this label, are the caller's to know."""
    return kind not in _INNER and label.confidentiality is not Confidentiality.secret


def _withheld(run: str = "") -> Answer:
    return error("The result holds a secret, so it is not given out.", run=run)


def _text(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": value}
    return {"type": "text", "text": msgspec.json.format(msgspec.json.encode(value), indent=2).decode()}


def sayable(value: Any) -> Any:
    """The value as JSON that can be sent: halves of characters, which no encoding has, become `?`."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _whole(value)
    return value


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case _:
            return value
