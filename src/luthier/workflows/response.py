"""What a run with blocks of outputs delivers: the first block that applies, its body written as it says."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StepError
from luthier.spec.emit import flow, member
from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools import delivered
from luthier.workflows.judging import answer
from luthier.workflows.operations.tables import formatted
from luthier.workflows.operations.texts import a_kind, spelled
from luthier.workflows.record import NULL, BranchTaken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from luthier.expr import Scope
    from luthier.spec import OutputBlock
    from luthier.spec.outputs import Format


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """How a body is to be delivered. `label` is that of status and headers."""

    status: int = 200
    headers: dict[str, str] = {}
    label: Label = TRUSTED


def respond(blocks: Sequence[OutputBlock], scope: Scope) -> tuple[Labelled[Any], Response]:
    """The body and the response of the first block that applies; an empty mapping where none does.

    Which block it is depends on the conditions that were read, so all of it carries their labels. Raises
    LuthierError.
    """
    control = TRUSTED
    for block in blocks:
        if block.when is not None:
            read = answer("condition", block.when.evaluate(scope), ())
            control = control.join(read.label) if isinstance(read, BranchTaken) else control
            if not (isinstance(read, BranchTaken) and read.taken):
                continue
        return _made(block, scope, control)
    return Labelled({}, control), Response(label=control)


def _made(block: OutputBlock, scope: Scope, control: Label) -> tuple[Labelled[Any], Response]:
    headers: dict[str, str] = {}
    label = control
    if block.headers is not None:
        found = block.headers.evaluate(scope)
        label = label.join(found.whole)
        headers = {key: _header(key, value) for key, value in delivered(found.value).items()}
    if block.redirect is not None:
        address = block.redirect.evaluate(scope)
        headers["Location"] = _header("Location", delivered(address.value))
        page = NULL
        if block.template is not None:
            found = block.template.evaluate(scope)
            page = Labelled(spelled(delivered(found.value)), found.whole)
            headers.setdefault("Content-Type", "text/html; charset=utf-8")
        response = Response(status=block.status, headers=headers, label=label.join(address.whole))
        return page.joined(control), response
    body = NULL if block.body is None else block.body.evaluate(scope)
    output = Labelled(delivered(body.value), body.label, body.parts)
    if block.raw:
        output = Labelled(spelled(output.value), output.whole)
    elif block.format is not None:
        output = _formatted(output, block.format)
        headers.setdefault("Content-Type", block.format.content_type)
    return output.joined(control), Response(status=block.status, headers=headers, label=label)


def _header(name: str, value: Any) -> str:
    text = spelled(value)
    if any(character in text for character in "\r\n\0"):
        raise StepError("code", f"the header {name} holds a line break")
    return text


def _formatted(body: Labelled[Any], form: Format) -> Labelled[Any]:
    """The part that is delivered, as text unless it is JSON."""
    value = body.value
    if form.extract:
        if not isinstance(value, dict) or form.extract not in value:
            raise StepError("code", f"the body has no field {form.extract!r} to be written as {form.type}")
        body = body.member(form.extract, value[form.extract])
    elif form.type != "json" and isinstance(value, dict):
        if len(value) != 1:
            message = (
                f"FORMAT_EXTRACTION_FAILED: a body of {len(value)} fields cannot be written as {form.type}"
            )
            raise StepError("code", message, hint="Say which field is meant: {type: …, extract: FIELD}.")
        ((key, only),) = value.items()
        body = body.member(key, only)
    return body if form.type == "json" else Labelled(_text(body.value, form.type), body.whole)


def _text(value: Any, form: str) -> str:
    match form, value:
        case _, str():
            return value
        case "yaml", dict():
            return "\n".join(line for key, item in value.items() for line in member(key, item, 0))
        case "yaml", _:
            return flow(value, quoted=True)
        case "csv", list():
            return _table(value)
        case "csv", _:
            raise StepError("code", f"csv is written from a list, not from {a_kind(value)}")
        case _:
            return spelled(value)


def _table(rows: list[Any]) -> str:
    if all(isinstance(row, dict) for row in rows):
        return formatted(rows, "csv")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    for row in rows:
        cells = row if isinstance(row, list) else [row]
        writer.writerow("" if cell is None else spelled(cell) for cell in cells)
    return out.getvalue().removesuffix("\r\n")
