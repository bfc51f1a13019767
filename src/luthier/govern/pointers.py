"""Places in arguments, by a JSON Pointer with wildcards, and the labels of what stands there. Pure.

`*` and `?` stand for characters of one key or index, `**` for any number of them. A place that holds more
than one value carries the join of all that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.taint import Label, Labelled

_ANY_DEPTH = "**"
_WILD = frozenset("*?[")
_SCALARS = (str, int, float, type(None))


@lru_cache(maxsize=1024)
def compiled(pointer: str) -> tuple[str, ...]:
    """The tokens of a pointer."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def labels_at(value: Labelled[Any], tokens: tuple[str, ...]) -> Iterator[Label]:
    """The labels of all places that the tokens lead to."""
    if not tokens:
        yield value.whole
        return
    head, rest = tokens[0], tokens[1:]
    if head == _ANY_DEPTH:
        yield from labels_at(value, rest)
    if not isinstance(value.value, (Mapping, list, tuple)):
        if not isinstance(value.value, _SCALARS):
            yield value.whole  # what is in it is not known, so it may be what is looked for
        return
    wild = not _WILD.isdisjoint(head)
    pairs = value.value.items() if isinstance(value.value, Mapping) else enumerate(value.value)
    for key, item in pairs:
        if head == _ANY_DEPTH:
            yield from labels_at(value.member(key, item), tokens)
        elif key == head or ((type(key) is not str or wild) and fnmatchcase(str(key), head)):
            yield from labels_at(value.member(key, item), rest)
