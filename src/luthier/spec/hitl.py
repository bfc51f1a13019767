"""The `config` of a `hitl` step: what a person is asked, what they see, and who may answer what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.expr.scan import has_expression
from luthier.spec.ensemble import HitlConfig
from luthier.spec.expressions import placed
from luthier.spec.think import schema_fault
from luthier.spec.words import quoted
from luthier.tools.closed import read_closed

if TYPE_CHECKING:
    from luthier.expr import Compiled
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Reader

_NOBODY = "nobody is told by itself: `luthier approvals list` shows what waits"
_ANSWER = "write the closed type or the JSON Schema of the answer under `schema`"
_HINTS = {
    **dict.fromkeys(("question", "title", "text", "description"), "write prompt"),
    **dict.fromkeys(("channels", "channel", "notificationChannel", "notificationConfig", "notify"), _NOBODY),
    **dict.fromkeys(("slack", "email", "webhook", "webhookUrl"), _NOBODY),
    **dict.fromkeys(("as", "type", "answer", "fields", "form", "options"), _ANSWER),
    **dict.fromkeys(("context", "show", "payload"), "write data"),
    **dict.fromkeys(("approver", "users", "roles"), "write approvers, a list"),
    **dict.fromkeys(("expires", "expiresIn", "ttl"), "write timeout, in milliseconds"),
}
_DECIDING = "a person decides: `luthier approvals approve ID`, or `deny ID`"
_ACTIONS = ("suspend", "resume", "approve", "reject")
CLOSED = frozenset({"enum", "integer", "number", "pattern"})
UNMET = ("fail", "continue")


def read_hitl(reader: Reader, draft: Draft) -> HitlConfig | None:
    """Read it all, noting expressions in the draft; None, and faults, where something is wrong."""
    before = len(reader.sink.faults)
    action = reader.choice(_ACTIONS, "action")
    if action not in (None, "suspend"):
        reader.sink.add(f"a step cannot {action} what waits", reader.places["action"], suggestion=_DECIDING)
    prompt, data = _compiled(reader, draft, "prompt", "message"), _compiled(reader, draft, "data")
    schema = _schema(reader)
    timeout = reader.seconds("timeout")
    unmet = {name: reader.choice(UNMET, name) for name in ("on_reject", "on_timeout")}
    approvers = _approvers(reader)
    reader.done(_HINTS)
    if len(reader.sink.faults) > before:
        return None
    given: dict[str, Any] = {"timeout": timeout, **unmet}
    given = {name: value for name, value in given.items() if value is not None}
    return HitlConfig(prompt=prompt, data=data, schema=schema, approvers=approvers, **given)


def _compiled(reader: Reader, draft: Draft, *names: str) -> Compiled | None:
    found = placed(reader.sink, reader.take(*names))
    if found is None:
        return None
    draft.uses.expressions[f"config.{names[0]}"] = found
    written = found.compiled is not None and found.compiled.is_constant
    if names[0] == "prompt" and written and not isinstance(found.value, str):
        reader.sink.wrong("text", found.path, found.value)
    return found.compiled


def _schema(reader: Reader) -> dict[str, Any] | None:
    """The schema of an answer, a closed type as what it means."""
    found = reader.take("schema")
    if found is None:
        return None
    closed = isinstance(found.value, dict) and len(found.value) == 1 and CLOSED & found.value.keys()
    if found.value == "boolean" or closed:
        try:
            definition = read_closed(found.value).schema.definition
        except ValueError as error:
            reader.sink.add(str(error), found.path)
            return None
        return definition if isinstance(definition, dict) else None
    if not isinstance(found.value, dict):
        reader.sink.wrong("a closed type or a JSON Schema", *found)
    elif fault := schema_fault(found.value):
        reader.sink.add(f"`schema` cannot be used: {fault}", found.path)
    else:
        return found.value
    return None


def _approvers(reader: Reader) -> tuple[str, ...]:
    found = reader.take("approvers")
    if found is None:
        return ()
    names = reader.sink.texts(found.path, found.value, "a list of clients, roles, or `caller`") or ()
    if isinstance(found.value, list) and not found.value:
        reader.sink.add("`approvers` is empty: nobody could answer", found.path)
    for index, name in enumerate(found.value if isinstance(found.value, list) else ()):
        if isinstance(name, str) and (not name.strip() or has_expression(name)):
            message = f"{quoted(name)} is no name of an approver: it is plain text, without an expression"
            reader.sink.add(message, (*found.path, index))
    return names
