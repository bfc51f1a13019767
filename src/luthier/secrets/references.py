"""References in text: `${env.X}`, `${env:X}`, `${X}`, `${X:-default}`, and to secrets; `$${` writes `${`.

`${secret:NAME}`, `${keyring:SERVICE/USER}` and `${file:PATH}` stand for secrets that are kept elsewhere.

A text is expanded once and what comes out is never looked at again, so no value can smuggle in a reference.
The default of `${X:-default}` is plain text and, as in a shell, also stands in for a variable that is set but
empty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import msgspec

from luthier.errors import SecretError, StoreError, UnresolvedReferenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.secrets.secret import Secret

Kind = Literal["env", "secret", "keyring", "file", "unknown"]

STORED = frozenset({"secret", "keyring", "file"})
"""Kinds of references to secrets that are kept elsewhere."""

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inner>[^}]*)(?P<close>\}?)")
_ENV = re.compile(r"(?:env[.:])?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_LATER = re.compile(r"(?P<kind>secret|keyring|file):(?P<name>.+)", re.DOTALL)


class Reference(msgspec.Struct, frozen=True):
    """One reference: `text` as written, at `start` in its string. `unknown`: it cannot be read as one."""

    kind: Kind
    name: str
    text: str
    start: int
    default: str | None = None

    def value(self, env: Mapping[str, str]) -> str | None:
        """What it stands for; None when that cannot be told."""
        if self.kind != "env":
            return None
        found = env.get(self.name)
        return self.default if self.default is not None and not found else found


@runtime_checkable
class Stores(Protocol):
    """An environment that has stores of secrets behind it."""

    def secret(self, reference: Reference, /) -> Secret:
        """What a `secret`, `keyring` or `file` reference stands for. Raises SecretError and StoreError."""
        ...


def find(text: str) -> tuple[Reference, ...]:
    """Every reference in the text, in order; escaped ones are none."""
    return tuple(_read(match) for match in _REFERENCE.finditer(text) if match["inner"] is not None)


def expand(text: str, env: Mapping[str, str], *, place: str, secrets: bool = False) -> str:
    """The text with its references replaced and `$${` written as `${`.

    `place` says where the text stands (`luthier.yaml:12:5 (mcpServers.git.env.TOKEN)`), and `secrets` whether
    secrets may stand there: then `env` is asked for them, if it has stores of them behind it. Raises
    UnresolvedReferenceError on the first reference that has no value here.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["inner"] is None:
            return "${"
        reference = _read(match)
        if secrets and reference.kind in STORED and isinstance(env, Stores):
            try:
                return env.secret(reference).reveal()
            except (SecretError, StoreError) as error:
                raise _failed(reference, error, place=place) from None
        value = reference.value(env)
        if value is None:
            raise unresolved(reference, place=place)
        return value

    return _REFERENCE.sub(replaced, text)


def unresolved(reference: Reference, *, place: str) -> UnresolvedReferenceError:
    """The error for a reference without a value: what is missing, where it is written, what to do."""
    match reference.kind:
        case "env":
            message = f"the environment variable {reference.name} is not set"
            hint = f"Set it, or write a default: ${{{reference.name}:-…}}."
        case "unknown":
            message = f"{reference.text!r} is not a reference"
            hint = "Write ${env.NAME}, ${NAME} or ${NAME:-default}; $${ writes ${ itself."
        case _:
            message = f"{reference.text} cannot be resolved here"
            hint = (
                "References to secrets may stand in headers, env, auth and secret of a server, nowhere else."
            )
    where = f"{place}: " if place else ""
    return UnresolvedReferenceError(where + message + ".", reference=reference.text, place=place, hint=hint)


def _failed(reference: Reference, error: SecretError | StoreError, *, place: str) -> UnresolvedReferenceError:
    where = f"{place}: " if place else ""
    message = f"{where}{reference.text} cannot be resolved: {error.message.rstrip('.')}."
    return UnresolvedReferenceError(message, reference=reference.text, place=place, hint=error.hint)


def _read(match: re.Match[str]) -> Reference:
    text, start, inner = match.group(), match.start(), match["inner"]
    if match["close"] and "${" not in inner:
        if found := _ENV.fullmatch(inner):
            return Reference("env", found["name"], text, start, found["default"])
        if found := _LATER.fullmatch(inner):
            kind: Kind = found["kind"]  # type: ignore[assignment]  # the pattern names only kinds
            return Reference(kind, found["name"], text, start)
    return Reference("unknown", inner, text, start)
