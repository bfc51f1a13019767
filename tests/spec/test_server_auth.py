"""What `auth` of a server needs, by its type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SpecError
from luthier.spec import read_project

if TYPE_CHECKING:
    from luthier.spec.project import Auth

CREDENTIALS = {"type": "oauth", "clientId": "c", "clientSecret": "s"}


def read(auth: dict[str, Any]) -> Auth:
    servers = {"mcpServers": {"lute": {"url": "https://lute.example/mcp", "auth": auth}}}
    return read_project(servers, root=Path()).servers["lute"].auth


def test_an_issuer_stands_for_the_token_url_that_it_publishes() -> None:
    auth = read(CREDENTIALS | {"issuer": "https://auth.example"})
    assert (auth.issuer, auth.token_url) == ("https://auth.example", None)


def test_an_id_token_comes_with_its_provider() -> None:
    given = {"idToken": "${env.ID}", "idpTokenUrl": "https://idp.example/token", "idpClientId": "i"}
    auth = read(CREDENTIALS | {"issuer": "https://auth.example"} | given)
    assert (auth.id_token, auth.idp_token_url) == ("${env.ID}", "https://idp.example/token")
    assert auth.idp_client_id == "i"


@pytest.mark.parametrize(
    ("auth", "missing"),
    [
        (CREDENTIALS, ["token_url"]),
        ({"type": "oauth", "issuer": "https://auth.example"}, ["client_id", "client_secret"]),
        (CREDENTIALS | {"idToken": "t"}, ["issuer", "idp_token_url"]),
        ({"type": "bearer"}, ["token"]),
    ],
)
def test_what_is_missing_is_named(auth: dict[str, Any], missing: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        read(auth)
    assert len(raised.value.faults) == len(missing)
    for name, fault in zip(missing, raised.value.faults, strict=True):
        assert name in str(fault)


@pytest.mark.parametrize("auth", [{"type": "none"}, {"type": "oauth", "interactive": True}])
def test_some_types_need_nothing_more(auth: dict[str, Any]) -> None:
    assert read(auth).type == auth["type"]
