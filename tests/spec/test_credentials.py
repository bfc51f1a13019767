"""What a credential is, by its name and by its shape, and where it stands itself."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.spec import read_project
from luthier.spec.credentials import holds_credential, is_credential_name, written_credentials

GITHUB = f"ghp_{'a1' * 18}"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-Api-Key",
            "x-api-key",
            "apikey",
            "X-Auth-Token",
        ),
        *(
            "GITHUB_TOKEN",
            "BRAVE_API_KEY",
            "DB_PASSWORD",
            "clientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
        ),
        *("GITHUB_PAT", "SmtpPass", "key", "access_token", "JWT"),
    ],
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("Accept", "User-Agent", "X-Trace", "LOG_LEVEL", "HOME", "MAX_TOKENS", "TOKENIZERS_PARALLELISM"),
        *("SSH_KEY_PATH", "TOKEN_FILE", "AWS_ACCESS_KEY_ID", "AUTH_TYPE", "TOKEN_URL", "KEYBOARD", "MONKEY"),
        *("PASS_ENABLED", "", "_", "42"),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_credential_name(name)


def test_fields_for_credentials() -> None:
    assert holds_credential("secret")
    assert holds_credential("auth", "client_secret")
    assert not holds_credential("auth", "client_id")
    assert holds_credential("headers", "Authorization")
    assert not holds_credential("env", "LOG_LEVEL")
    assert not holds_credential("url")


def found(**entry: Any) -> list[tuple[str | int, ...]]:
    (server,) = read_project({"mcpServers": {"git": entry}}).servers.values()
    return [keys for keys, _, _ in written_credentials(server)]


WRITTEN: dict[str, dict[str, Any]] = {
    "a header": {"headers": {"Authorization": "Bearer hunter2"}},
    "a header by another name": {"headers": {"X-Api-Key": "hunter2"}},
    "any header by its shape": {"headers": {"X-Other": f"id {GITHUB}"}},
    "a reference with a default": {"headers": {"X-Api-Key": "${env.KEY:-hunter2}"}},
    "more than a word beside a reference": {"headers": {"X-Api-Key": "hunter2${env.EMPTY}"}},
    "a token": {"auth": {"type": "bearer", "token": "hunter2"}},
    "the secret that signs": {"secret": "hunter2"},
    "a parameter of the url": {"url": "https://x.example/?api_key=hunter2"},
    "a parameter of the url, by reference": {"url": "https://x.example/?token=${env.TOKEN}"},
    "a token in the url": {"url": f"https://x.example/{GITHUB}"},
    "the password of a proxy": {"proxy": "http://me:hunter2@proxy.example"},
}


@pytest.mark.parametrize("entry", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_out(entry: dict[str, Any]) -> None:
    assert len(found(**({"url": "https://x.example"} | entry))) == 1


PROCESSES: dict[str, dict[str, Any]] = {
    "a variable": {"env": {"GITHUB_TOKEN": "hunter2"}},
    "a variable by the shape of its value": {"env": {"OTHER": GITHUB}},
    "an argument": {"args": ["-m", "x", f"--to={GITHUB}"]},
    "an argument by its option": {"args": ["-m", "x", "--api-key=hunter22"]},
    "an argument behind its option": {"args": ["-m", "x", "--token", "hunter22"]},
}


@pytest.mark.parametrize("entry", PROCESSES.values(), ids=PROCESSES)
def test_what_is_written_out_for_a_process(entry: dict[str, Any]) -> None:
    assert len(found(**({"command": "python"} | entry))) == 1


REFERRED: dict[str, dict[str, Any]] = {
    "by a reference": {"headers": {"Authorization": "${secret:git}"}},
    "behind a scheme": {"headers": {"Authorization": "Bearer ${env.TOKEN}"}},
    "as a part of a cookie": {"headers": {"Cookie": "session=${env.S}; theme=dark"}},
    "with an empty default": {"headers": {"X-Api-Key": "${env.KEY:-}"}},
    "a switch": {"headers": {"X-Auth": "none"}},
    "a small number": {"headers": {"X-Key": "12"}},
    "no credential": {"headers": {"Accept": "text/plain"}},
    "the password of a proxy": {"proxy": "http://me:${env.PW}@proxy.example"},
    "a plain parameter": {"url": "https://x.example/?page=1"},
    "the token": {"auth": {"type": "bearer", "token": "${keyring:git/me}"}},
}


@pytest.mark.parametrize("entry", REFERRED.values(), ids=REFERRED)
def test_what_is_only_referred_to(entry: dict[str, Any]) -> None:
    assert found(**({"url": "https://x.example"} | entry)) == []


def test_an_address_that_cannot_be_read_is_for_others_to_refuse() -> None:
    assert found(url="https://${env.HOST}/[", proxy="http://[") == []
