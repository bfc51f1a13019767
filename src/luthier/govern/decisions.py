"""Decisions that the log hears of before they count; where they are then not kept, a second line says so."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import msgspec

from luthier.govern.audit import written_down
from luthier.govern.records import Decided, Switched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from luthier.govern.audit import AuditLog

NOT_KEPT = "not kept"


@contextmanager
def written(audit: AuditLog, *records: Decided | Switched) -> Iterator[None]:
    """Around what keeps the decisions of these records; whatever that raises takes them back.

    Raises AuditError.
    """
    for record in records:
        audit.write(record)
    try:
        yield
    except Exception:
        for record in records:
            audit.write(_taken_back(record))
        raise


@asynccontextmanager
async def written_first(audit: AuditLog, *records: Decided | Switched) -> AsyncIterator[None]:
    """The same, on an event loop."""
    for record in records:
        await written_down(audit, record)
    try:
        yield
    except Exception:
        for record in records:
            await written_down(audit, _taken_back(record))
        raise


def _taken_back(record: Decided | Switched) -> Decided | Switched:
    if isinstance(record, Switched):
        return msgspec.structs.replace(record, to=NOT_KEPT)
    return msgspec.structs.replace(record, decision=NOT_KEPT)
