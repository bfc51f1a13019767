"""Values with their labels as plain JSON, as records and caches keep them, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.redaction import known
from luthier.taint import TRUSTED, Confidentiality, Label, Labelled, escape_pointer
from luthier.tools import Envelope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SCALARS = frozenset({type(None), bool, int, float})


def keep_labelled(labelled: Labelled[Any], *, whole: bool = False) -> dict[str, Any]:
    """`{value, label?, parts?, envelopes?, withheld?}`; the last two are lists of JSON Pointers.

    `whole`: nothing is withheld and no secret blotted out.
    """
    label, parts = labelled.label, labelled.parts
    if label is not TRUSTED and label.confidentiality is Confidentiality.secret and not whole:
        return {"value": None, "label": label.to_json(), "withheld": [""]}
    secret = set(_secret(parts)) if parts else set()
    envelopes: list[str] = []
    kept: dict[str, Any] = {"value": plain(labelled.value, "", None if whole else secret, envelopes)}
    if label is not TRUSTED and label != TRUSTED:
        kept["label"] = label.to_json()
    if parts:
        kept["parts"] = {pointer: part.to_json() for pointer, part in parts.items()}
    if envelopes:
        kept["envelopes"] = envelopes
    if secret and not whole:
        kept["withheld"] = sorted(secret)
    return kept


def _secret(parts: Mapping[str, Label]) -> Iterator[str]:
    return (at for at, label in parts.items() if label.confidentiality is Confidentiality.secret)


def plain(value: Any, pointer: str, withheld: set[str] | None, envelopes: list[str]) -> Any:
    """The value as plain JSON, null at the pointers that are withheld; notes where an envelope stood.

    None withheld: what is known to be a secret stays too.
    """
    if withheld is not None and pointer in withheld:
        return None
    if type(value) in _SCALARS:
        return value
    match value:
        case str():
            return value if withheld is None else known.blot_known(value)
        case dict():
            return _plain_members(value, pointer, withheld, envelopes)
        case list() | tuple():
            return [
                plain(item, f"{pointer}/{index}", withheld, envelopes) for index, item in enumerate(value)
            ]
        case Envelope():
            envelopes.append(pointer)
            return _plain_members(_spread(value), pointer, withheld, envelopes)
        case _:
            return value


def _plain_members(
    members: Mapping[str, Any], pointer: str, withheld: set[str] | None, envelopes: list[str]
) -> dict[str, Any]:
    return {
        key: plain(item, f"{pointer}/{escape_pointer(key)}", withheld, envelopes)
        for key, item in members.items()
    }


def read_labelled(kept: Any) -> Labelled[Any]:
    """Read `keep_labelled` back."""
    label = Label.from_json(kept["label"]) if "label" in kept else TRUSTED
    parts = {pointer: Label.from_json(part) for pointer, part in kept.get("parts", {}).items()}
    envelopes = kept.get("envelopes", ())
    value = _enveloped(kept["value"], envelopes) if envelopes else kept["value"]
    return Labelled(value, label, parts)


def _enveloped(value: Any, envelopes: Iterable[str]) -> Any:
    """The value with envelopes at these pointers; what has none below is not looked through."""
    tree: dict[str, Any] = {}
    for pointer in envelopes:
        branch = tree
        for part in pointer.split("/")[1:]:
            branch = branch.setdefault(part, {})
        branch[_HERE] = True
    return _grown(value, tree)


_HERE = "/"  # no part of a pointer has a slash


def _grown(value: Any, tree: dict[str, Any]) -> Any:
    for part, branch in tree.items():
        if part != _HERE:
            key = int(part) if isinstance(value, list) else part.replace("~1", "/").replace("~0", "~")
            value[key] = _grown(value[key], branch)
    return _gathered(value) if _HERE in tree else value


def _spread(envelope: Envelope) -> dict[str, Any]:
    """All of an envelope; its blocks only where they are not the content already."""
    fields, blocks = envelope.fields(), envelope.raw_blocks()
    return fields if blocks is None or blocks is fields["content"] else {**fields, "blocks": blocks}


def _gathered(fields: dict[str, Any]) -> Envelope:
    content = fields["content"]
    blocks = fields.pop("blocks", content if isinstance(content, list) else None)
    return Envelope(fields, blocks)
