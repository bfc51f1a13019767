"""How a client shows a token endpoint who it is: in the form, in a header, or by a signed assertion."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import msgspec

from luthier.errors import ConnectError
from luthier.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

Method = Literal["none", "client_secret_post", "client_secret_basic", "private_key_jwt"]

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A client's name and proof. `audience` and `algorithms` matter to a signed assertion only."""

    client_id: str
    secret: Secret | None
    method: Method
    audience: str = ""
    algorithms: tuple[str, ...] | None = None

    def apply(
        self, form: dict[str, str], *, now: float
    ) -> tuple[dict[str, str], dict[str, str], list[Secret]]:
        """The form and the headers to send, and what in them is secret. Raises ValueError for a bad key."""
        if self.secret is None or self.method == "none":
            return form | {"client_id": self.client_id}, {}, []
        plain = self.secret.reveal()
        if self.method == "client_secret_post":
            return form | {"client_id": self.client_id, "client_secret": plain}, {}, [self.secret]
        if self.method == "client_secret_basic":
            pair = f"{quote(self.client_id, safe='')}:{quote(plain, safe='')}"
            basic = base64.b64encode(pair.encode()).decode()
            return form, {"Authorization": f"Basic {basic}"}, [self.secret, Secret(basic)]
        from luthier.wire.auth.assertion import signed

        proof = signed(self.secret, self.client_id, self.audience, now=now, algorithms=self.algorithms)
        assertion = {"client_assertion_type": _ASSERTION, "client_assertion": proof}
        return form | {"client_id": self.client_id} | assertion, {}, [self.secret, Secret(proof)]


def is_key(secret: Secret | None) -> bool:
    """Whether the secret is a private key in PEM, so that assertions are signed with it."""
    return secret is not None and secret.reveal().lstrip().startswith("-----BEGIN ")


def choose(secret: Secret | None, methods: Sequence[str] | None, *, server: str) -> Method:
    """The method to use where the endpoint's metadata lists these; None: there is no metadata."""
    if secret is None or not secret:
        return "none"
    if is_key(secret):
        return "private_key_jwt"
    if methods is None:
        return "client_secret_post"
    if "client_secret_basic" in methods:
        return "client_secret_basic"
    if "client_secret_post" in methods:
        return "client_secret_post"
    raise ConnectError(
        f"Server {server!r}: its authorization server takes no client secret, in no form.",
        server=server,
        phase="login",
        retryable=False,
        hint="If it takes private_key_jwt, write the private key (PEM) as client_secret.",
    )
