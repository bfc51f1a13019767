"""A text that must not be seen: it is told only to who asks for it by `reveal()`."""

from __future__ import annotations

import hmac
from typing import NoReturn, Self


class Secret:
    """Holds a text and shows nothing of it: not printed, not formatted, not pickled, not encoded."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._text), _bytes(other._text))

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(…)"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, object]) -> Self:
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
