"""What an entry exposes: its whole command, who is given each reference, literals that look like secrets."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.spec import Auth, ServerEntry
from luthier.spec.hosts import command_line, sent, suspects
from luthier.spec.project import Launch


def entry(**fields: Any) -> ServerEntry:
    return ServerEntry(id="a", **fields)


def test_a_command_is_shown_whole_on_one_line_with_nothing_hidden_in_it() -> None:
    long = "x" * 5_000
    shown = command_line(
        entry(command="npx", args=("-y", "a b", "", "\x1b[2K\r", "c\nd\te", "\u202etxt", long))
    )
    assert shown.startswith("npx -y 'a b' '' '\\x1b[2K\\x0d' 'c\\x0ad\\x09e' '\\u202etxt' x")
    assert shown.endswith(long)
    assert "\n" not in shown


def test_of_a_launch_profile_its_name_and_what_fills_its_holes_are_shown() -> None:
    launched = entry(launch=Launch(profile="files", values={"root": "/srv/a b"}), env={"K": "${A}"})
    assert command_line(launched) == "profile files 'root=/srv/a b'"
    assert [one.to for one in sent(launched)] == ["the process profile files 'root=/srv/a b'"]


def test_each_reference_is_told_with_who_would_be_given_it() -> None:
    by_url = entry(
        url="https://e.example.com/${A}",
        headers={"X": "${B} $${C}"},
        auth=Auth(
            type="oauth", client_id="${D}", client_secret="${secret:E}", token_url="https://t.example.com"
        ),
        secret="${F:-x}",
    )
    assert [(one.key, one.reference, one.to) for one in sent(by_url)] == [
        ("url", "${A}", "https://e.example.com/${A}"),
        ("headers.X", "${B}", "https://e.example.com/${A}"),
        ("auth.client_id", "${D}", "https://t.example.com"),
        ("auth.client_secret", "${secret:E}", "https://t.example.com"),
        ("secret", "${F:-x}", "https://e.example.com/${A}"),
    ]
    bearer = entry(url="https://e.example.com", auth=Auth(type="bearer", token="${T}"))
    assert [one.to for one in sent(bearer)] == ["https://e.example.com"]
    process = entry(command="python", args=("${S}",), env={"K": "${A}${B}"})
    assert [one.reference for one in sent(process)] == ["${S}", "${A}", "${B}"]
    assert {one.to for one in sent(process)} == {"the process python '${S}'"}


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        (
            {"env": {"GITHUB_TOKEN": "abcdef", "NODE_ENV": "production", "MONKEY": "banana"}},
            ["env.GITHUB_TOKEN"],
        ),
        ({"env": {"TOKEN": "${T}", "PASSWORD": "", "AUTH": "yes"}}, []),
        ({"env": {"X": "ghp_" + "0123456789abcdef" * 3}}, ["env.X"]),
        ({"env": {"URL": "postgres://ada:pw@db.example.com/x"}}, ["env.URL"]),
        ({"args": ("--api-key", "abcdef", "--port", "8080")}, ["args[1]"]),
        ({"args": ("--token=abcdef", "-p", "key")}, ["args[0]"]),
        ({"args": ("--token", "--other", "plain")}, []),
        ({"args": ("sk-0123456789abcdef0123",)}, ["args[0]"]),
    ],
)
def test_literals_of_a_process_that_look_like_secrets_are_found(
    fields: dict[str, Any], keys: list[str]
) -> None:
    assert [one.key for one in suspects(entry(command="x", **fields))] == keys


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        (
            {"headers": {"Authorization": "Bearer abcdef", "X-Api-Key": "abc123", "Accept": "x"}},
            ["headers.Authorization", "headers.X-Api-Key"],
        ),
        ({"headers": {"Authorization": "Bearer ${T}"}}, []),
        ({"url": "https://e.example.com/?api_key=12345"}, ["url"]),
        ({"url": "https://e.example.com/a@b?page=1"}, []),
        ({"auth": Auth(type="bearer", token="abcdef")}, ["auth.token"]),
        ({"auth": Auth(type="oauth", client_id="plain", token_url="https://t.example.com/token")}, []),
        ({"secret": "abcdef"}, ["secret"]),
    ],
)
def test_literals_for_a_url_that_look_like_secrets_are_found(fields: dict[str, Any], keys: list[str]) -> None:
    found = suspects(entry(**{"url": "https://e.example.com"} | fields))
    assert [one.key for one in found] == keys
    assert all(one.hint.startswith("keep it elsewhere and write ${env.") for one in found)
