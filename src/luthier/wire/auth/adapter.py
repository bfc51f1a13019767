"""The Fetch over the house's own HTTP client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.clock import Deadline
from luthier.errors import ConnectError, HttpError, WireError
from luthier.web import shown
from luthier.wire.auth.fetch import Fetched
from luthier.wire.http.facts import Asked
from luthier.wire.http.target import HttpTarget, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.clock import Clock
    from luthier.wire.auth.guard import UrlGuard
    from luthier.wire.http.client import HttpClient

TIMEOUT = 30.0
MAX_BYTES = 1024 * 1024

_ASKED = Asked(phase="login", method="a request for a token")


class ClientFetch:
    """Sends nothing of an entry but what it is given: neither headers nor, to other origins, certificates."""

    def __init__(
        self,
        client: HttpClient,
        guard: UrlGuard,
        clock: Clock,
        *,
        server: str,
        tls: TlsFiles,
        proxy: str | None,
    ) -> None:
        self._client = client
        self._guard = guard
        self._clock = clock
        self._server = server
        self._tls = tls
        self._proxy = proxy

    async def __call__(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Fetched:
        try:
            async with Deadline(self._clock, TIMEOUT):
                answer = await self._client.open(self.target(url), _ASKED, method, url, headers, body)
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Fetched(answer.status, names, await answer.read())
        except TimeoutError:
            raise self._failed(url, f"no answer within {TIMEOUT:g} s") from None
        except HttpError as error:
            if 300 <= error.status < 400:  # noqa: PLR2004  (elsewhere, where nothing is sent)
                return Fetched(error.status, {}, b"")
            raise
        except ConnectError:
            raise
        except WireError as error:
            # Whatever became of the request for a token: the call that waits for it was not sent.
            raise self._failed(url, error.message.rstrip(".")) from error

    def target(self, url: str) -> HttpTarget:
        return HttpTarget(
            server=self._server,
            url=url,
            tls=self._tls if self._guard.is_own(url) else TlsFiles(ca=self._tls.ca),
            proxy=self._proxy,
            max_message_bytes=MAX_BYTES,
            timeout=TIMEOUT,
            reach=self._guard.reach(url),
        )

    def _failed(self, url: str, reason: str) -> ConnectError:
        return ConnectError(
            f"Server {self._server!r}: no token could be got from {shown(url)!r}: {reason}.",
            server=self._server,
            phase="login",
        )
