"""The three streams of the process, also where whoever started it left one of them closed."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)  # what is written to stdout fails, as on a full disk


def fill_streams() -> None:
    """Closed ones are filled in: writing to stdout fails, stderr goes nowhere, and `sys.stdin` stays None.

    Else the next file that is opened, the store perhaps, would get their number, and what is printed with it.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (as long as the process lives)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def reason(error: Exception) -> str:
    """Why a stream took no more."""
    return "it is closed" if getattr(error, "errno", 0) == errno.EBADF else str(error)


def give_up(number: int) -> None:
    """The interpreter flushes once more at exit; give it somewhere to write."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
