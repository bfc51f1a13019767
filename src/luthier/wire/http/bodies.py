"""What a body is, as far as a transport has to know."""

from __future__ import annotations

from msgspec import UNSET

from luthier.text import one_line
from luthier.wire.codec import REFUSED, decode


def is_message(data: bytes) -> bool:
    try:
        decode(data)
    except REFUSED:
        return False
    return True


def is_error(body: bytes) -> bool:
    """Whether a body is an error of the protocol."""
    try:
        error = decode(body).error
    except REFUSED:
        return False
    return isinstance(error, dict) and isinstance(error.get("code"), int)


def is_result(body: bytes) -> bool:
    try:
        return decode(body).result is not UNSET
    except REFUSED:
        return False


def beginning(body: bytes) -> str:
    """How it begins, for people."""
    return one_line(body[:400].decode(errors="replace"), 100)
