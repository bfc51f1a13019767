"""Which addresses may be asked for tokens and metadata: by the rules for the server that they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import ConnectError
from luthier.text import one_line
from luthier.web import origin, shown

if TYPE_CHECKING:
    from luthier.web import Reach, UrlRules


class UrlGuard:
    """Judges URLs by the rules, and knows which origins are those of the entry: `own`.

    What a name resolves to is not known here: the HTTP client looks at that when it connects, by `reach`.
    Raises ValueError for an own URL that is none.
    """

    def __init__(self, *own: str, server: str, rules: UrlRules) -> None:
        self._own = frozenset(map(origin, own))
        self._server = server
        self._rules = rules

    def is_own(self, url: str) -> bool:
        """Whether it is an origin of the entry, so that a certificate of ours may be shown there."""
        return origin(url) in self._own

    def reach(self, url: str) -> Reach:
        """Where a connection for this URL may go, which `check` has passed."""
        return self._rules.reach(url)

    def check(self, url: str, *, what: str) -> None:
        """Raises ConnectError, never to be retried, if nothing may be sent there. `what` names the URL."""
        fault = self._rules.fault(url)
        if fault is None:
            return
        raise ConnectError(
            f"Server {self._server!r}: {what} {one_line(shown(url))!r} is refused: it {fault.why}.",
            server=self._server,
            phase="login",
            retryable=False,
            hint=fault.hint,
        )
