"""Whether a process that a test did not start itself has ended."""

from __future__ import annotations

import os
import select


def gone(pid: int, bound: float) -> bool:
    """Whether the process ends within so many seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    ended = bool(poll.poll(bound * 1000))
    os.close(watched)
    return ended
