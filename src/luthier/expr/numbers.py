"""Numbers as JavaScript has them: read from text, printed, and made canonical.

Arithmetic is done in doubles. What comes out of it is an int where it is whole and exact, a float where it is
not, and null where JavaScript has NaN or an infinity. Whole numbers that came as data keep all their digits
until one calculates.
"""

from __future__ import annotations

import math
import re

from luthier.errors import ExpressionError

Number = int | float

EXACT = 2**53
"""Up to here every whole number is a double."""

SPACE = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript trims."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)", re.ASCII)
_INFINITY = re.compile(r"[+-]?Infinity")
_SMALL, _LARGE = -7, 21  # the exponents from which JavaScript writes them
_LONGEST = 1000  # a longer numeral is no number that anybody wrote


def canonical(number: Number) -> Number | None:
    """The number as a JSON value: whole and exact as int, not finite as None."""
    if isinstance(number, int):
        return number if -EXACT <= number <= EXACT else canonical(double(number))
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and -EXACT <= number <= EXACT else number


def double(number: Number) -> float:
    """The nearest double; an infinity beyond their range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def read_number(text: str) -> Number:
    """What `Number(text)` is: nan where it is none, 0 for blank text. May be infinite."""
    text = text.strip(SPACE)
    if not text:
        return 0
    if len(text) > _LONGEST:
        return math.nan
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _PREFIXED.fullmatch(text):
        return double(int(text, 0))
    if _INFINITY.fullmatch(text):
        return float(text)
    return math.nan


def number_text(number: Number) -> str:
    """The number as JavaScript prints it: 42 for 42.0, 1e+21, 0.00001."""
    if isinstance(number, int):
        try:
            return int.__repr__(number)
        except ValueError:
            raise ExpressionError("This number has too many digits to be printed.") from None
    if number.is_integer() and abs(number) < EXACT:
        return str(int(number))
    shortest = repr(number)
    if "e" not in shortest:
        return shortest.removesuffix(".0")
    mantissa, _, power = shortest.partition("e")
    exponent = int(power)
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    if 0 <= exponent < _LARGE:
        return sign + digits.ljust(exponent + 1, "0")
    if _SMALL < exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{mantissa.removesuffix('.0')}e{'+' if exponent > 0 else '-'}{abs(exponent)}"
