"""The label lattice: integrity falls, confidentiality rises, sources add up; a join loses nothing.

Join is the least upper bound in a product of two chains and a power set: commutative, associative,
idempotent, with `TRUSTED` as its neutral element.
"""

from __future__ import annotations

from enum import IntEnum
from functools import reduce
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Integrity(IntEnum):
    """How far a value is trusted; the worst wins in a join."""

    trusted = 0
    untrusted = 1


class Confidentiality(IntEnum):
    """How far a value may travel; the most closed wins in a join."""

    public = 0
    private = 1
    secret = 2


class Source(msgspec.Struct, frozen=True, order=True, gc=False):
    """One origin: which tool of which server gave the value, in which call."""

    server: str
    tool: str
    call_id: str = ""


class Label(msgspec.Struct, frozen=True, gc=False):
    """Integrity, confidentiality and sources of one value."""

    integrity: Integrity = Integrity.trusted
    confidentiality: Confidentiality = Confidentiality.public
    sources: frozenset[Source] = frozenset()

    def join(self, other: Label) -> Label:
        """The least label that is at least as bad as both."""
        if self is other or other is TRUSTED:
            return self
        if self is TRUSTED:
            return other
        sources = self.sources if self.sources >= other.sources else self.sources | other.sources
        return Label(
            max(self.integrity, other.integrity),
            max(self.confidentiality, other.confidentiality),
            sources,
        )

    def __le__(self, other: Label) -> bool:
        """Whether `other` is at least as bad in every part."""
        return (
            self.integrity <= other.integrity
            and self.confidentiality <= other.confidentiality
            and self.sources <= other.sources
        )

    def to_json(self) -> dict[str, object]:
        """`{integrity, confidentiality, sources}` in plain words, sources in a stable order."""
        return {
            "integrity": self.integrity.name,
            "confidentiality": self.confidentiality.name,
            "sources": [
                {"server": source.server, "tool": source.tool, "call_id": source.call_id}
                for source in sorted(self.sources)
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Label:
        """Read `to_json` back. Raises ValueError on anything else: a label that is not known is no label."""
        try:
            return cls(
                Integrity[str(data["integrity"])],
                Confidentiality[str(data["confidentiality"])],
                frozenset(msgspec.convert(data["sources"], list[Source])),
            )
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"not a label: {error}") from error


TRUSTED = Label()
"""The project's own literals and the operator's inputs."""

UNTRUSTED = Label(Integrity.untrusted, Confidentiality.private)
"""What comes from anywhere else, unless declared."""

SECRET = Label(Integrity.trusted, Confidentiality.secret)
"""Environment variables that an ensemble may read."""


def join(labels: Iterable[Label]) -> Label:
    """The join of any number of labels; `TRUSTED` for none. Linear: sources are gathered in one set."""
    distinct = [label for label in labels if label is not TRUSTED]
    if len(distinct) < 3:  # noqa: PLR2004  (nothing to gain)
        return reduce(Label.join, distinct, TRUSTED)
    return Label(
        max(label.integrity for label in distinct),
        max(label.confidentiality for label in distinct),
        frozenset().union(*{label.sources for label in distinct}),
    )
