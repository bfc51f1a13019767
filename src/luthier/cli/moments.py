"""Moments as people write them: a date, a date with a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(written: str, now: datetime) -> float:
    """Unix seconds of `30d` (so long ago) or `2026-01-31T12:00` (UTC, where it does not say).

    Raises BadParameter for anything else.
    """
    ago = _AGO.fullmatch(written)
    try:
        if ago is not None:
            return (now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
        at = datetime.fromisoformat(written)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        message = f"{written!r} is no moment: write how long ago (90m, 12h, 30d, 4w) or a date (2026-01-31)."
        raise typer.BadParameter(message) from None
