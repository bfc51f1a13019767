"""A text that must not be seen: it is told only to who asks for it by `reveal()`.

The text lies in a closure and not in an attribute, so that nothing that walks over objects meets it. Every
secret makes itself known to the redactor of the process: where its text turns up, it is blotted out.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NoReturn, Self

from luthier.redaction import known

if TYPE_CHECKING:
    from collections.abc import Callable


class Secret:
    """Holds a text and shows nothing of it: not printed, not formatted, not pickled, not encoded."""

    __slots__ = ("_told",)

    def __init__(self, text: str) -> None:
        known.add(text)
        self._told: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        return self._told()

    def __bool__(self) -> bool:
        return bool(self._told())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._told()), _bytes(other.reveal()))

    def __hash__(self) -> int:
        return hash(self._told())

    def __repr__(self) -> str:
        return "Secret(…)"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, object]) -> Self:
        return self

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
