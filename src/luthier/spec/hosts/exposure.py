"""What an entry would run, what it would send where, and which of its literals look like secrets."""

from __future__ import annotations

import hashlib
import re
import shlex
from typing import TYPE_CHECKING

import msgspec

from luthier.redaction.patterns import blot_guesses
from luthier.secrets import find
from luthier.spec.check_project import texts_of
from luthier.spec.credentials import SECRET_FIELDS, written_credentials
from luthier.spec.document import dotted
from luthier.spec.write_servers import server_mapping
from luthier.text import escape

if TYPE_CHECKING:
    from luthier.spec.origin import KeyPath
    from luthier.spec.project import ServerEntry

_ENCODER = msgspec.json.Encoder(order="sorted")


class Sent(msgspec.Struct, frozen=True):
    """A reference, the key it is written under, and who would be given what it stands for."""

    reference: str
    key: str
    to: str


class Suspect(msgspec.Struct, frozen=True):
    """A literal that looks like a secret: its key, and what to do about it."""

    key: str
    hint: str


def command_line(entry: ServerEntry) -> str:
    """The command and every argument, whole, quoted as for a shell, on one line.

    Of a launch profile only its name and what is put into its holes: the rest is the operator's own word.
    """
    if entry.launch is not None:
        holes = (f"{name}={value}" for name, value in entry.launch.values.items())
        line = shlex.join(("profile", entry.launch.profile, *holes))
    else:
        line = shlex.join((entry.command or "", *entry.args))
    return escape(line).replace("\n", "\\x0a").replace("\t", "\\x09")


def digest(entry: ServerEntry) -> str:
    """A hash of all that the entry says but that it is approved: who approves it says what was seen."""
    says = server_mapping(msgspec.structs.replace(entry, approved=True))
    return hashlib.sha256(_ENCODER.encode([entry.id, says])).hexdigest()[:32]


def sent(entry: ServerEntry) -> tuple[Sent, ...]:
    """Every reference in the entry, in the order of its fields."""
    return tuple(
        Sent(reference.text, dotted(keys), _receiver(entry, keys))
        for keys, text in texts_of(entry)
        for reference in find(text)
    )


def suspects(entry: ServerEntry) -> tuple[Suspect, ...]:
    """Literals that look like secrets: more of them than `check` tells of, as they are only pointed out."""
    found: dict[KeyPath, None] = dict.fromkeys(one.keys for one in written_credentials(entry))
    found |= dict.fromkeys(keys for keys, text in texts_of(entry) if blot_guesses(text) != text)
    return tuple(Suspect(dotted(keys), _hint(keys)) for keys in found)


def _hint(keys: KeyPath) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", str(keys[-1])).strip("_").upper()
    name = name if name[:1].isalpha() else "NAME"
    stored = f", or ${{secret:{name}}}" if keys[0] in SECRET_FIELDS else ""
    return f"keep it elsewhere and write ${{env.{name}}}{stored}"


def _receiver(entry: ServerEntry, keys: KeyPath) -> str:
    """Who is given the text under that key."""
    if entry.url is None:
        return f"the process {command_line(entry)}"
    if keys[0] == "auth":
        login = entry.auth.token_url or entry.auth.issuer or f"the login that {entry.url} names"
        return str(entry.url) if keys[-1] == "token" else login
    return str(entry.url)
