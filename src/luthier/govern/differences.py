"""What differs between two JSON values, path by path: how a person is shown that a definition changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterator


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place, as a JSON Pointer, and what stood and stands there; UNSET where nothing does."""

    path: str
    old: Any = UNSET
    new: Any = UNSET


def differences(old: Any, new: Any) -> tuple[Difference, ...]:
    """All places in which two values differ, the deepest that tell it, in the order of the old value."""
    return tuple(_differences("", old, new))


def _differences(path: str, old: Any, new: Any) -> Iterator[Difference]:
    # What was not there is told as deep down as what was: nothing of it goes without being shown.
    if _are(dict, old, new):
        before, after = old or {}, new or {}
        for key in [*before, *(key for key in after if key not in before)]:
            place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _differences(place, before.get(key, UNSET), after.get(key, UNSET))
    elif _are(list, old, new):
        for index, (one, other) in enumerate(zip_longest(old or (), new or (), fillvalue=UNSET)):
            yield from _differences(f"{path}/{index}", one, other)
    elif not _is_same(old, new):
        yield Difference(path, old, new)


def _are(kind: type, old: Any, new: Any) -> bool:
    """Whether both are of that kind; or one is, with something in it, and the other is not there."""
    if isinstance(old, kind) and isinstance(new, kind):
        return True
    there = new if old is UNSET else old if new is UNSET else None
    return isinstance(there, kind) and bool(there)


def _is_same(old: Any, new: Any) -> bool:
    """Equal in JSON: where Python calls true and 1 equal, JSON does not."""
    return old is new or (old == new and isinstance(old, bool) == isinstance(new, bool))
