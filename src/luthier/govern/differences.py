"""What differs between two JSON values, path by path: how a person is shown that a definition changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 200  # differences told; a person reads no more


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place, as a JSON Pointer, and what stood and stands there; UNSET where nothing does."""

    path: str
    old: Any = UNSET
    new: Any = UNSET


def differences(old: Any, new: Any) -> tuple[Difference, ...]:
    """All places in which two values differ, the deepest that tell it, in the order of the old value."""
    found: list[Difference] = []
    for difference in _differences("", old, new):
        found.append(difference)
        if len(found) == _MOST:
            break
    return tuple(found)


def _differences(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _differences(place, old.get(key, UNSET), new.get(key, UNSET))
    elif isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip_longest(old, new, fillvalue=UNSET)):
            yield from _differences(f"{path}/{index}", one, other)
    elif not _is_same(old, new):
        yield Difference(path, old, new)


def _is_same(old: Any, new: Any) -> bool:
    """Equal in JSON: where Python calls true and 1 equal, JSON does not."""
    return old is new or (old == new and isinstance(old, bool) == isinstance(new, bool))
