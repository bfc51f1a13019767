"""Remembers which token was got because the one before was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.secrets import Secret

_WHILE = 60.0  # seconds; a token that is refused later than this had been good before


class Healed:
    """So that a server which refuses whatever it is given costs one renewal a request, and no more."""

    def __init__(self) -> None:
        self._token: Secret | None = None
        self._since = 0.0

    def note(self, token: Secret, now: float) -> None:
        """Remember the token that is to heal a refusal; `now` is a steady time."""
        self._token, self._since = token, now

    def by(self, token: Secret, now: float) -> bool:
        """Whether it is that token, so that another would be refused as well."""
        return token == self._token and now - self._since < _WHILE
