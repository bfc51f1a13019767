"""References to secrets in text: `${env.X}`, `${env:X}`, `${X}` and `${X:-default}`; `$${` writes `${`.

A text is expanded once and what comes out is never looked at again, so no value can smuggle in a reference.
The default of `${X:-default}` is plain text and, as in a shell, also stands in for a variable that is set but
empty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.errors import UnresolvedReferenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["env", "secret", "keyring", "file", "unknown"]

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


def find(text: str) -> tuple[Reference, ...]:
    """Every reference in the text, in order; escaped ones are none."""
    return tuple(_read(match) for match in _REFERENCE.finditer(text) if match["inner"] is not None)


def expand(text: str, env: Mapping[str, str], *, place: str) -> str:
    """The text with its references replaced and `$${` written as `${`.

    `place` says where the text stands (`luthier.yaml:12:5 (mcpServers.git.env.TOKEN)`). Raises
    UnresolvedReferenceError on the first reference that has no value here.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["inner"] is None:
            return "${"
        reference = _read(match)
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
            message = f"{reference.text} cannot be resolved: this version reads only env references"
            hint = "Put the value into an environment variable and write ${env.NAME}."
    where = f"{place}: " if place else ""
    return UnresolvedReferenceError(where + message + ".", reference=reference.text, place=place, hint=hint)


def _read(match: re.Match[str]) -> Reference:
    text, start, inner = match.group(), match.start(), match["inner"]
    if match["close"] and "${" not in inner:
        if found := _ENV.fullmatch(inner):
            return Reference("env", found["name"], text, start, found["default"])
        if found := _LATER.fullmatch(inner):
            kind: Kind = found["kind"]  # type: ignore[assignment]  # the pattern names only kinds
            return Reference(kind, found["name"], text, start)
    return Reference("unknown", inner, text, start)
