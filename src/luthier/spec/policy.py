"""Policies as frozen values, read from `policies:`: what may be called with what, and what needs asking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from luthier.spec.origin import Origin
from luthier.spec.patterns import check_address
from luthier.spec.reader import Found, Reader
from luthier.spec.words import quoted
from luthier.taint import Confidentiality, Integrity

if TYPE_CHECKING:
    from luthier.spec.reader import Sink

Then = Literal["allow", "ask", "deny"]
THEN: tuple[Then, ...] = ("allow", "ask", "deny")

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

_NOT_JSON_POINTER = "it is a JSON Pointer such as /to or /recipients/*, or * for every argument"


class LabelTest(msgspec.Struct, frozen=True, kw_only=True):
    """Holds for a label that is at least that bad, and has a source whose `server/tool` fits the pattern."""

    integrity: Integrity = Integrity.trusted
    confidentiality: Confidentiality = Confidentiality.public
    sources: str | None = None


class PolicyRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. All that stands under `when` must hold; what is None or empty holds always.

    `tool` and `agent` are patterns of which one must fit. `argument` is a JSON Pointer glob, `*` stands for
    any leaf or the branch that the call is made in.
    """

    name: str
    then: Then
    reason: str = ""
    tool: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    argument: str | None = None
    label: LabelTest | None = None
    annotations: dict[str, bool] = {}
    place: str = ""


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """`default` is for calls that no rule fits; of the rules that fit, the strictest decides."""

    default: Then = "allow"
    rules: tuple[PolicyRule, ...] = ()
    place: str = ""  # of the default


def read_policies(reader: Reader) -> Policies:
    """`policies: {default, rules}`; a bare list is the rules."""
    found = reader.take("policies")
    if found is None:
        return Policies()
    if isinstance(found.value, list):
        return Policies(rules=_rules(reader.sink, found))
    inner = reader.inner("policies")
    if inner is None:
        return Policies()
    default = cast("Then | None", inner.choice(THEN, "default")) or "allow"
    rules = inner.take("rules")
    place = Origin(inner.sink.document, inner.path).place("default")
    policies = Policies(default=default, rules=_rules(inner.sink, rules) if rules else (), place=place)
    inner.done()
    return policies


def _rules(sink: Sink, found: Found) -> tuple[PolicyRule, ...]:
    if not isinstance(found.value, list):
        sink.wrong("a list of rules", *found)
        return ()
    rules = []
    for index, data in enumerate(found.value):
        path = (*found.path, index)
        reader = Reader.of(sink, path, data, "a rule")
        rule = _rule(reader, index) if reader else None
        if rule is not None:
            rules.append(rule)
    return tuple(rules)


def _rule(reader: Reader, index: int) -> PolicyRule | None:
    name = reader.text("name") or f"rule {index + 1}"
    then = cast("Then | None", reader.choice(THEN, "then"))
    if then is None and "then" not in reader.places:
        reader.sink.add("`then` is missing", reader.path, suggestion="allow, ask or deny")
    reason = reader.text("reason") or ""
    inner = reader.inner("when")
    when = _when(inner) if inner else {}
    if "when" in reader.data and reader.data["when"] is None:
        reader.sink.add("`when` is empty", (*reader.path, "when"), key=True, suggestion="leave it out")
    reader.done()
    if then is None or when is None:
        return None
    place = Origin(reader.sink.document, reader.path).place()
    return PolicyRule(name=name, then=then, reason=reason, place=place, **when)


def _when(reader: Reader) -> dict[str, Any] | None:
    """The conditions of a rule; None where one of them cannot be read."""
    before = len(reader.sink.faults)
    _all_said(reader)
    label = reader.inner("label")
    fields = {
        "tool": _patterns(reader, "tool", "tools"),
        "agent": _patterns(reader, "agent", "agents"),
        "argument": _pointer(reader),
        "label": _label(label) if label else None,
        "annotations": _annotations(reader),
    }
    reader.done({"arguments": "did you mean argument?", "server": "write tool: mcp://SERVER/*"})
    return fields if len(reader.sink.faults) == before else None


def _all_said(reader: Reader) -> None:
    """A condition that says nothing is a mistake: taken for one that is left out, its rule would fit more."""
    for key, value in reader.data.items():
        if value is None:
            message = f"{quoted(str(key))} is empty"
            reader.sink.add(
                message, (*reader.path, key), key=True, suggestion="leave it out, or say what it is"
            )


def _patterns(reader: Reader, *names: str) -> tuple[str, ...]:
    """One pattern or several. An empty list is a mistake: it would fit nothing, or everything."""
    found = reader.take(*names)
    if found is None:
        return ()
    value = [found.value] if isinstance(found.value, str) else found.value
    texts = reader.sink.texts(found.path, value, "a pattern or a list of patterns")
    if value == [] or not all(map(str.strip, texts or ())):
        reader.sink.add(f"{quoted(names[0])} holds no pattern", found.path)
    if names[0] == "tool":
        for index, text in enumerate(texts or ()):
            path = found.path if isinstance(found.value, str) else (*found.path, index)
            check_address(reader.sink, path, text)
    return texts or ()


def _pointer(reader: Reader) -> str | None:
    text = reader.text("argument")
    if text is not None and text != "*" and not text.startswith("/"):
        hint = f"did you mean /{text}?"
        message = f"{quoted(text)} points nowhere: {_NOT_JSON_POINTER}"
        reader.sink.add(message, reader.places["argument"], suggestion=hint)
    return text


def _label(reader: Reader) -> LabelTest:
    _all_said(reader)
    integrity = reader.choice(list(Integrity.__members__), "integrity")
    confidentiality = reader.choice(list(Confidentiality.__members__), "confidentiality")
    sources = reader.text("sources", "source")
    if sources == "":
        reader.sink.add("`sources` is empty", reader.places["sources"])
    reader.done()
    if not any(reader.data.values()):
        message = "`label` must say integrity, confidentiality or sources"
        reader.sink.add(message, reader.path)
    return LabelTest(
        integrity=Integrity[integrity or "trusted"],
        confidentiality=Confidentiality[confidentiality or "public"],
        sources=sources,
    )


def _annotations(reader: Reader) -> dict[str, bool]:
    inner = reader.inner("annotations")
    if inner is None:
        return {}
    _all_said(inner)
    wanted = {}
    for name in HINTS:
        if found := inner.take(name):
            if isinstance(found.value, bool):
                wanted[name] = found.value
            else:
                inner.sink.wrong("true or false", *found)
    inner.done()
    if not inner.data:
        inner.sink.add("`annotations` names no hint", inner.path, suggestion="such as readOnlyHint: true")
    return wanted
