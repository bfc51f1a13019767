"""A value with its label, and for structured values a sparse map of JSON Pointers to the labels of parts.

The label of a place inside the value is the one at the nearest pointer above it, else the value's own. A
value that is delivered whole carries the join of everything in it (`whole`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from luthier.taint.label import TRUSTED, Label, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T_co = TypeVar("T_co", covariant=True)


# gc=False: a value does not lead back to what labels it, and a run keeps many thousands of them.
class Labelled(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """`value`, its `label`, and `parts`: JSON Pointer (`/a/0/b`) → the label there, where it differs."""

    value: T_co
    label: Label = TRUSTED
    parts: dict[str, Label] = msgspec.field(default_factory=dict)

    @property
    def whole(self) -> Label:
        """The label of the value as one piece."""
        return join(self.parts.values()).join(self.label) if self.parts else self.label

    def at(self, pointer: str) -> Label:
        """The label of one place: that of the nearest pointer at or above it."""
        if not self.parts:
            return self.label
        while pointer:
            if pointer in self.parts:
                return self.parts[pointer]
            pointer = pointer.rpartition("/")[0]
        return self.parts.get("", self.label)

    def member(self, key: str | int, value: Any) -> Labelled[Any]:
        """The member `value` found under `key`, with the labels that belong to it."""
        if not self.parts:
            return Labelled(value, self.label)
        prefix = "/" + escape_pointer(str(key))
        inner = {
            pointer[len(prefix) :]: label
            for pointer, label in self.parts.items()
            if pointer.startswith(prefix + "/")
        }
        return Labelled(value, self.at(prefix), inner)

    def members(self) -> list[Labelled[Any]]:
        """Every member of a list, each as `member` gives it, in one pass."""
        inner: list[dict[str, Label]] = [{} for _ in self.value]  # type: ignore[attr-defined]
        labels = [self.at("")] * len(inner)
        for pointer, label in self.parts.items():
            token, slash, rest = pointer[1:].partition("/")
            if slash:
                inner[int(token)]["/" + rest] = label
            elif pointer:
                labels[int(token)] = label
        return [
            Labelled(value, label, parts)
            for value, label, parts in zip(self.value, labels, inner, strict=True)  # type: ignore[call-overload]
        ]

    def joined(self, label: Label) -> Labelled[T_co]:
        """The same value, nowhere better than `label`."""
        if label is TRUSTED:
            return self
        parts = {pointer: own.join(label) for pointer, own in self.parts.items()}
        return Labelled(self.value, self.label.join(label), parts)


def merge(
    members: Mapping[str, Labelled[Any]] | list[Labelled[Any]], label: Label = TRUSTED
) -> Labelled[Any]:
    """Build a mapping or a list out of labelled members: each keeps its own label under its pointer."""
    parts: dict[str, Label] = {}
    pairs = members.items() if not isinstance(members, list) else enumerate(members)
    for key, member in pairs:
        if member.label is label and not member.parts:
            continue
        pointer = "/" + escape_pointer(str(key))
        if member.label != label:
            parts[pointer] = member.label
        for inner, inner_label in member.parts.items():
            parts[pointer + inner] = inner_label
    value: Any
    if isinstance(members, list):
        value = [member.value for member in members]
    else:
        value = {key: member.value for key, member in members.items()}
    return Labelled(value, label, parts)


def gathered(value: Any) -> Labelled[Any]:
    """A value that may hold labelled values at any depth, as one: each label at the place where it stood.

    Every list and mapping is a new one. Tuples become lists, objects with fields mappings of them. Raises
    RecursionError for what is nested too deep or holds itself.
    """
    laid = _laid(value)
    return laid if isinstance(laid, Labelled) else Labelled(laid)


def _laid(value: Any) -> Any:
    """The value, as a labelled one only where something in it was labelled."""
    match value:
        case None | str() | int() | float():
            return value
        case Labelled():
            return _over(value, gathered(value.value))
        case dict():
            return _merged({key: _laid(item) for key, item in value.items()})
        case list() | tuple():
            return _merged([_laid(item) for item in value])
        case type():
            return value
        case _:
            fields = _fields(value)
            return value if fields is None else _laid({name: getattr(value, name) for name in fields})


def _merged(members: Any) -> Any:
    inner = members if isinstance(members, list) else members.values()
    if Labelled not in map(type, inner):
        return members
    if isinstance(members, list):
        return merge([_as_labelled(member) for member in members])
    return merge({key: _as_labelled(member) for key, member in members.items()})


def _as_labelled(value: Any) -> Labelled[Any]:
    return value if isinstance(value, Labelled) else Labelled(value)


def _over(outer: Labelled[Any], inner: Labelled[Any]) -> Labelled[Any]:
    """The inner value under the labels of both."""
    parts = {pointer: inner.at(pointer).join(outer.at(pointer)) for pointer in (*inner.parts, *outer.parts)}
    return Labelled(inner.value, inner.label.join(outer.label), parts)


def _fields(value: Any) -> Iterable[str] | None:
    """The fields of what is written as JSON by its fields."""
    kind = type(value)
    for told in ("__struct_fields__", "__dataclass_fields__"):
        if hasattr(kind, told):
            return tuple(getattr(kind, told))
    attrs = getattr(kind, "__attrs_attrs__", None)
    return None if attrs is None else [attribute.name for attribute in attrs]


def label_of(value: object) -> Label:
    """The label of anything: a labelled value's own, else that of a literal."""
    return value.whole if isinstance(value, Labelled) else TRUSTED


def escape_pointer(token: str) -> str:
    """One reference token of a JSON Pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token
