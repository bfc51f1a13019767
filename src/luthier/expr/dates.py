"""Time as expressions know it: milliseconds since 1970 and ISO 8601 text, always UTC, in English."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr.budget import ITEM
from luthier.expr.values import is_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.expr.budget import Frame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOON = 12
_CODE = re.compile(r"%(.?)", re.DOTALL)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_CODES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}",
    "y": lambda at: f"{at.year % 100:02}",
    "m": lambda at: f"{at.month:02}",
    "B": lambda at: _MONTHS[at.month - 1],
    "b": lambda at: _MONTHS[at.month - 1][:3],
    "d": lambda at: f"{at.day:02}",
    "A": lambda at: _DAYS[at.weekday()],
    "a": lambda at: _DAYS[at.weekday()][:3],
    "j": lambda at: f"{at.timetuple().tm_yday:03}",
    "H": lambda at: f"{at.hour:02}",
    "I": lambda at: f"{(at.hour + 11) % 12 + 1:02}",
    "p": lambda at: "AM" if at.hour < _NOON else "PM",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "f": lambda at: f"{at.microsecond:06}",
    "z": lambda _: "+0000",
    "Z": lambda _: "UTC",
    "%": lambda _: "%",
}


def now(frame: Frame) -> int:
    """The recorded start of the run, in milliseconds since 1970."""
    return int(frame.now * 1000)


def date(frame: Frame, value: Any, pattern: Any = None) -> str:
    """A time as ISO 8601 text with milliseconds, or in a pattern of the usual `%Y-%m-%d %H:%M:%S` codes.

    The time is given in milliseconds since 1970 or as ISO 8601 text; without an offset that is UTC.
    """
    at = _moment(value)
    if pattern is None:
        return f"{at.year:04}-{at:%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
    if not isinstance(pattern, str):
        raise ExpressionError("The pattern of `date` must be text, such as '%Y-%m-%d'.")
    frame.spend(ITEM * len(pattern))
    return _CODE.sub(lambda found: _spelled(found[1], at), pattern)


def _spelled(code: str, at: datetime) -> str:
    if code not in _CODES:
        raise ExpressionError(
            f"`date` knows no %{code}.", hint=f"It knows {' '.join('%' + known for known in _CODES)}."
        )
    return _CODES[code](at)


def _moment(value: Any) -> datetime:
    try:
        if is_number(value):
            return _EPOCH + timedelta(milliseconds=value)
        at = datetime.fromisoformat(value.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ExpressionError(
            "`date` cannot read this as a time.",
            hint="It takes milliseconds since 1970 or text such as 2030-01-31T08:00:00Z; years 1 to 9999.",
        ) from None
