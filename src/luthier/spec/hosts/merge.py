"""What an import would do to the servers that are there: nothing is overwritten unless that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.spec.hosts.files import Imported
from luthier.spec.project import ServerEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Deed = Literal["added", "replaced", "kept", "unchanged"]


class Change(msgspec.Struct, frozen=True):
    """One server of an import: what is done. `there`: the entry of its id, if there is one."""

    deed: Deed
    server: Imported
    there: ServerEntry | None = None


def merged(
    there: Mapping[str, ServerEntry], imported: Iterable[Imported], *, replace: bool
) -> tuple[Change, ...]:
    """A change for every server. What says the same already is left, approved or not."""
    return tuple(_change(there.get(one.entry.id), one, replace=replace) for one in imported)


def _change(there: ServerEntry | None, one: Imported, *, replace: bool) -> Change:
    if there is None:
        return Change("added", one)
    if msgspec.structs.replace(there, approved=False) == one.entry:
        return Change("unchanged", one, there)
    return Change("replaced" if replace else "kept", one, there)
