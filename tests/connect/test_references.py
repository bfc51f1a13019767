"""References of entries become secrets only at the wire, and production takes nothing but references."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from luthier.clock import FakeClock, settle
from luthier.connect import MemoryState, ServerRegistry
from luthier.connect.launch import prepare
from luthier.connect.references import expanded, off_loop
from luthier.connect.targets import auth_of, secret_of, target_of
from luthier.errors import ConnectError
from luthier.redaction import redact
from luthier.secrets import Secret, Sources, Vault, find_keys
from luthier.spec import ServerEntry, read_project

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-of-an-entry"


def entry_of(environment: str = "development", **fields: Any) -> tuple[ServerEntry, ServerRegistry]:
    project = read_project({"environment": environment, "mcpServers": {"git": fields}})
    return project.servers["git"], ServerRegistry.of(project)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    vault = Vault(MemoryState(), lambda id: find_keys({"HOME": str(tmp_path)}, id, project=tmp_path))
    vault.set("git", Secret(f"{CANARY}-stored"))
    path = tmp_path / "token"
    path.write_text(f"{CANARY}-file\n")
    path.chmod(0o600)
    return Sources({"TOKEN": f"{CANARY}-env"}, root=tmp_path, vault=lambda: vault)


def test_a_secret_reaches_headers_auth_and_signature(sources: Sources) -> None:
    entry, registry = entry_of(
        url="https://mcp.example.com",
        headers={"X-Api-Key": "${secret:git}", "X-Other": "${file:token}"},
        auth={"type": "bearer", "token": "${env.TOKEN}"},
        secret="${secret:git}",
    )
    headers = target_of(entry, registry, sources).headers
    assert headers == {"X-Api-Key": f"{CANARY}-stored", "X-Other": f"{CANARY}-file"}
    assert auth_of(entry, registry, sources).token == f"{CANARY}-env"
    assert secret_of(entry, sources) == f"{CANARY}-stored"


def test_a_secret_reaches_the_environment_of_a_process(sources: Sources, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("")
    entry, registry = entry_of(
        command="python", args=[str(tmp_path / "server.py")], env={"API_KEY": "${secret:git}"}
    )
    assert prepare(entry, registry, sources).env["API_KEY"] == f"{CANARY}-stored"


@pytest.mark.parametrize("field", ["command", "args", "cwd"])
def test_nowhere_else_in_a_process(field: str, sources: Sources) -> None:
    value: Any = ["${secret:git}"] if field == "args" else "${secret:git}"
    entry, registry = entry_of(**({"command": "python", "args": ["x.py"]} | {field: value}))
    with pytest.raises(ConnectError, match="cannot be resolved here") as caught:
        prepare(entry, registry, sources)
    assert not caught.value.retryable
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("fields", [{"url": "https://${secret:git}/"}, {"proxy": "http://${secret:git}/"}])
def test_nowhere_else_of_an_address(fields: dict[str, str], sources: Sources) -> None:
    entry, registry = entry_of(**({"url": "https://mcp.example.com"} | fields))
    with pytest.raises(ConnectError, match="cannot be resolved here"):
        target_of(entry, registry, sources)


def test_what_is_missing_is_named_with_file_key_and_reference(sources: Sources) -> None:
    entry, registry = entry_of(url="https://mcp.example.com", headers={"X-Api-Key": "${secret:mail}"})
    with pytest.raises(ConnectError) as caught:
        target_of(entry, registry, sources)
    assert "mcpServers.git.headers.X-Api-Key: ${secret:mail} cannot be resolved" in caught.value.message
    assert caught.value.hint == "Set it: luthier secrets set mail"
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("keys", "text", "shown"),
    [
        (("auth", "token"), "${env.TOKEN}", f"{CANARY}-env"),
        (("auth", "token"), "written-canary", "written-canary"),
        (("headers", "X-Any"), "Bearer ${env.TOKEN}", f"{CANARY}-env"),
        (("headers", "Authorization"), "Bearer written-canary", "written-canary"),
        (("env", "API_KEY"), "x${env.TOKEN}y", f"{CANARY}-env"),
        (("secret",), "written-canary", "written-canary"),
    ],
)
def test_what_is_expanded_is_known_to_the_redactor(
    keys: tuple[str, ...], text: str, shown: str, sources: Sources
) -> None:
    expanded(ServerEntry(id="git"), sources, text, *keys)
    assert shown not in redact(f"({shown})")


@pytest.mark.parametrize(
    ("keys", "text", "shown"),
    [
        (("env", "LOG_LEVEL"), "${env.TOKEN}", f"{CANARY}-env"),
        (("headers", "Accept"), "a-plain-text", "a-plain-text"),
    ],
)
def test_what_is_no_credential_is_not(keys: tuple[str, ...], text: str, shown: str, sources: Sources) -> None:
    expanded(ServerEntry(id="git"), sources, text, *keys)
    assert redact(f"({shown})") == f"({shown})"


WRITTEN: dict[str, dict[str, Any]] = {
    "a token": {"auth": {"type": "bearer", "token": "hunter22"}},
    "a client's secret": {
        "auth": {"type": "oauth", "client_id": "i", "client_secret": "hunter22", "token_url": "https://u"}
    },
    "a signature": {"secret": "hunter22"},
    "a header": {"headers": {"Authorization": "Bearer hunter22"}},
    "a default": {"headers": {"X-Api-Key": "${env.X:-hunter22}"}},
    "a parameter": {"url": "https://mcp.example.com/?api_key=hunter22"},
    "a proxy": {"proxy": "http://me:hunter22@proxy.example"},
}


@pytest.mark.parametrize("fields", WRITTEN.values(), ids=WRITTEN)
def test_production_takes_only_references(fields: dict[str, Any], sources: Sources) -> None:
    fields = {"url": "https://mcp.example.com"} | fields
    entry, registry = entry_of("production", **fields)
    with pytest.raises(ConnectError, match="which is not allowed in production") as caught:
        target_of(entry, registry, sources)
    error = caught.value
    assert "hunter22" not in f"{error} {error.facts()}"
    assert "mcpServers.git." in error.message
    assert "${secret:NAME}" in error.hint
    assert not error.retryable
    entry, registry = entry_of("development", **fields)
    assert target_of(entry, registry, sources).server == "git"


def test_production_takes_references(sources: Sources) -> None:
    entry, registry = entry_of(
        "production", url="https://mcp.example.com", headers={"Authorization": "Bearer ${secret:git}"}
    )
    assert target_of(entry, registry, sources).headers["Authorization"] == f"Bearer {CANARY}-stored"


RINGING = ServerEntry(id="git", timeout=5.0, headers={"X-Api-Key": "${keyring:git/me}"})


async def test_a_keyring_is_asked_in_a_thread() -> None:
    here = threading.get_ident()
    clock = FakeClock()
    assert await off_loop(ServerEntry(id="git"), clock, threading.get_ident) == here
    assert await off_loop(RINGING, clock, threading.get_ident) != here


async def test_a_keyring_that_waits_for_somebody_is_not_waited_for_without_end() -> None:
    clock, never = FakeClock(), threading.Event()
    task = asyncio.create_task(off_loop(RINGING, clock, lambda: never.wait(30)))
    await settle()
    await clock.advance(5)
    with pytest.raises(ConnectError, match="keyring of this machine did not answer in 5 s"):
        await task
    never.set()
