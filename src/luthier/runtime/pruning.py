"""Taking away runs that have ended, with those inside, their records, and what they have asked of people."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from luthier.workflows.runs import Wanted

if TYPE_CHECKING:
    from luthier.govern import Desk
    from luthier.workflows import RunRow, RunStore

_PAGE = 500


async def pruned(
    store: RunStore, people: Desk | None, before: float, *, dry: bool = False
) -> tuple[RunRow, ...]:
    """The runs that ended before that moment, the newest first; unless `dry` they are gone then.

    One of which anything has not ended is left whole. Each goes in a transaction of its own. StoreError.
    """
    rows = await asyncio.to_thread(_over, store, before)
    if dry or not rows:
        return rows
    if people is not None:
        await people.drop({row.id for row in rows})
    return await asyncio.to_thread(lambda: tuple(row for row in rows if store.prune(row.id)))


def _over(store: RunStore, before: float) -> tuple[RunRow, ...]:
    found: list[RunRow] = []
    while page := store.list(
        Wanted(limit=_PAGE, ended_before=before, before=found[-1].id if found else None)
    ):
        found += page
    return tuple(row for row in found if all(one.ended_at is not None for one in store.below(row.id)))
