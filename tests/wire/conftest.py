"""Sessions that a failing test leaves open are closed after it, so that one failure stays one failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.wire.support import OPENED, bounded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(autouse=True)
async def _close_sessions() -> AsyncIterator[None]:
    OPENED.clear()
    yield
    for session in OPENED:
        await bounded(session.close())
