"""Expands the texts of an entry: the one place where references to secrets become what they stand for.

What is a credential is told to the redactor here, before it goes anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from luthier.clock import Deadline
from luthier.errors import ConnectError
from luthier.redaction import known
from luthier.secrets import expand, find
from luthier.spec.credentials import SECRET_FIELDS, holds_credential, written_credentials
from luthier.tools.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.clock import Clock
    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry

T = TypeVar("T")


def expanded(entry: ServerEntry, environ: Mapping[str, str], text: str, *keys: str | int) -> str:
    """A text of the entry, which stands at `keys`, as it is used. Raises UnresolvedReferenceError."""
    value = expand(text, environ, place=entry.origin.place(*keys), secrets=keys[0] in SECRET_FIELDS)
    if holds_credential(*keys) or (keys[0] == "headers" and find(text)):
        known.add(value)
        for reference in find(text):
            known.add(reference.value(environ) or "")
    return value


def written_out(entry: ServerEntry, registry: ServerRegistry) -> tuple[tuple[str | int, ...], str] | None:
    """The first credential that stands in an entry where only references may, and why it may not."""
    if registry.environment != "production":
        return None
    found = next(written_credentials(entry), None)
    return None if found is None else (found.keys, f"{found.fault}, which is not allowed in production")


INSTEAD = "Keep it elsewhere and write ${env.NAME}, ${secret:NAME}, ${keyring:SERVICE/USER} or ${file:PATH}."


async def off_loop(entry: ServerEntry, clock: Clock, work: Callable[[], T]) -> T:
    """What work on the references of an entry gives; in a thread where a keyring may have to ask a person."""
    texts = (*entry.headers.values(), *entry.env.values(), entry.secret, entry.auth.token)
    others = (entry.auth.client_secret, entry.auth.client_id, entry.auth.id_token)
    if not any(one.kind == "keyring" for text in (*texts, *others) if text for one in find(text)):
        return work()
    try:
        async with Deadline(clock, entry.timeout):
            return await in_thread(work, name="luthier-keyring")
    except TimeoutError:
        message = f"Server {entry.id!r}: the keyring of this machine did not answer in {entry.timeout:g} s."
        hint = "Unlock it, or set `timeout_ms` higher."
        raise ConnectError(message, server=entry.id, phase="spawn", hint=hint) from None
