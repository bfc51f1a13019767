"""A process of its own that needs a token: `renewer.py FILE RESOURCE READY` prints the one that it got."""

from __future__ import annotations

import asyncio
import sys
import urllib.request

from luthier.clock import SystemClock
from luthier.spec.project import Auth
from luthier.web import UrlRules
from luthier.wire.auth import FileTokens, make_authorizer
from luthier.wire.http import HttpClient, OutgoingHttp


async def main(file: str, resource: str, ready: str) -> None:
    client = HttpClient({})
    authorizer = make_authorizer(
        Auth(type="oauth", interactive=True),
        server="lute",
        url=resource,
        secret=None,
        client=client,
        tokens=FileTokens(file),
        clock=SystemClock(),
        rules=UrlRules(allow_private=True, production=False),
    )
    with urllib.request.urlopen(ready, timeout=30):  # noqa: ASYNC210, S310  (nothing else runs yet)
        pass
    headers = await authorizer.headers(OutgoingHttp("POST", resource))
    sys.stdout.write(headers["Authorization"])
    await client.close()


asyncio.run(main(*sys.argv[1:]))
