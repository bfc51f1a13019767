"""One person's login at one server, as its entry describes it, and what is kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.secrets import Secret
from luthier.wire.auth.tokens import Grant, key

if TYPE_CHECKING:
    from luthier.wire.auth.tokens import TokenStore

PATIENCE = 300.0
"""Seconds for a person to log in."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """`client_id` where we are registered already, or the https address of a client metadata document."""

    server: str
    url: str
    client_id: str | None = None
    secret: Secret | None = None
    scope: str | None = None
    issuer: str | None = None

    @property
    def key(self) -> str:
        """What the login is kept under. Other facts in the entry mean another login."""
        return key("login", self.server, self.url, self.client_id, self.scope, self.issuer)

    @property
    def document(self) -> str | None:
        """The address of the client metadata document, if `client_id` is one."""
        named = self.client_id or ""
        head, _, path = named.removeprefix("https://").partition("/")
        return named if named.startswith("https://") and head and path else None

    @property
    def registered(self) -> bool:
        """Whether the entry says who we are, so that we never register anew."""
        return self.client_id is not None and self.document is None


async def forget(store: TokenStore, account: Account, grant: Grant) -> None:
    """Keep who we are, and drop tokens that are dead."""
    await store.save(account.key, msgspec.structs.replace(grant, tokens=None))
