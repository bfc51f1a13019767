"""What all ways to start a server share: the draft of it, how texts are expanded, how refusals are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from luthier.connect.references import expanded
from luthier.errors import ConnectError
from luthier.redaction import known
from luthier.spec import Sandbox
from luthier.spec.credentials import is_credential_name
from luthier.spec.variables import name_fault, setting_fault, value_fault
from luthier.text import escape, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.spec import ServerEntry


class Pinned(msgspec.Struct, frozen=True):
    """A file that must be vouched for before it is run; `what` and `keys` say which one it is."""

    path: Path
    what: str
    keys: tuple[str, ...]
    sha256: str | None = None
    executable: bool = False


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A start that its rules allow. `cwd` None: an empty folder of its own. `keys` lead to its sandbox."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path | None
    script: Path | None
    sandbox: Sandbox
    keys: tuple[str, ...] = ("sandbox",)
    pinned: tuple[Pinned, ...] = ()
    umask: int = -1


def variables(entry: ServerEntry, environ: Mapping[str, str], base: dict[str, str]) -> dict[str, str]:
    """The base, and what the entry adds to it. Refuses names and values that no entry may set."""
    env = dict(base)
    for index, name in enumerate(entry.inherit_env):
        if fault := name_fault(name):
            refuse(entry, f"{written(name)} {fault}", "inherit_env", index)
        if name in environ and not value_fault(environ[name]):
            env[name] = environ[name]
            if is_credential_name(name):
                known.add(environ[name])
    for name, text in entry.env.items():
        if fault := setting_fault(name):
            refuse(entry, f"{written(name)} {fault}", "env", name)
        value = expanded(entry, environ, text, "env", name)
        if fault := value_fault(value):
            refuse(entry, f"the value of {name} {fault}", "env", name)
        env[name] = value
    return env


def written(text: str) -> str:
    """Text of the entry as it is written, for people: with its references expanded it may hold secrets."""
    return repr(one_line(text))


def refuse(entry: ServerEntry, why: str, *keys: str | int, hint: str = "") -> NoReturn:
    """Raise the ConnectError that says why this server cannot be started, and where that is written."""
    place = escape(entry.origin.place(*keys))
    raise ConnectError(
        f"Server {entry.id!r} cannot be started: {f'{place}: ' if place else ''}{why}.",
        server=entry.id,
        phase="spawn",
        retryable=False,
        hint=hint,
    )
