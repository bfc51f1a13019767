"""Secrets: which references there are, and whether what they need is here. None is resolved or read."""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import TYPE_CHECKING

from luthier.doctor.finding import Case, Finding
from luthier.errors import SecretError
from luthier.secrets import find
from luthier.secrets.keys import VARIABLE, find_keys, is_beside
from luthier.spec.check_project import texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def secrets(case: Case) -> Iterator[Finding]:
    entries = [entry for entry in case.project.servers.values() if not entry.disabled]
    references = [found for entry in entries for _, text in texts_of(entry) for found in find(text)]
    kinds = Counter(reference.kind for reference in references)
    missing = sorted(
        {
            reference.name
            for reference in references
            if reference.kind == "env" and reference.value(case.environ) is None
        }
    )
    if missing:
        said = f"not set: {', '.join(missing)}"
        yield Finding(
            name="env", status="broken", said=said, fix="Set them, or name a file under `env_file`."
        )
    elif kinds["env"]:
        yield Finding(
            name="env", status="ok", said=f"all {kinds['env']} references to variables have a value"
        )
    if kinds["secret"]:
        where = f"the key in {VARIABLE}" if case.environ.get(VARIABLE) else "a key file of this user"
        said = f"{kinds['secret']} references, to be opened with {where}"
        yield Finding(name="secret", status="ok", said=said)
        yield from _place_of_keys(case)
    if kinds["keyring"] and importlib.util.find_spec("keyring") is None:
        said, fix = "the package that reads keyrings is not installed", "Run: pip install 'luthier[keyring]'"
        yield Finding(name="keyring", status="broken", said=said, fix=fix)
    for kind in ("keyring", "file"):
        if kinds[kind]:
            said = f"{kinds[kind]} references, which are read when a server is started"
            yield Finding(name=kind, status="ok", said=said)
    if not references:
        yield Finding(name="references", status="off", said="no server has any")


def _place_of_keys(case: Case) -> Iterator[Finding]:
    root = case.project.root
    try:
        beside = is_beside(find_keys(case.environ, "any", project=root), root)
    except SecretError as error:
        yield Finding(name="key", status="broken", said=error.message, fix=error.hint)
        return
    if beside:
        said = "the key of stored secrets lies in the project, beside the store that it opens"
        fix = f"Set HOME, XDG_STATE_HOME or {VARIABLE}."
        yield Finding(name="key", status="warning", said=said, fix=fix)
