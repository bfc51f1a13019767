"""What a process that holds secrets keeps from others: dumps of its memory, and looks into it.

A core dump writes all of it down, wherever the system keeps those. And what runs as the same user, a server
without a sandbox too, may read `/proc/PID/environ` and the memory itself, unless the process says otherwise.
"""

from __future__ import annotations

import sys
from contextlib import suppress

_SET_DUMPABLE = 4  # of prctl


def keep_to_itself() -> None:
    """No dumps of this process, and as far as the system knows how, no looks into it.

    The limit is passed on to what it starts; the other is not.
    """
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):  # who may not lower a limit has none to speak of
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
