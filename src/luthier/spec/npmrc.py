"""What a folder's .npmrc may not say to npx: settings that run code of their own.

npm reads the file of the folder that it takes for the project's, the nearest one with a package.json or a
node_modules. A setting there is as good as a flag on the command line, which is refused.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from luthier.spec.places import is_file, reading

if TYPE_CHECKING:
    from pathlib import Path

_MOST = 256 * 1024
_KEY = re.compile(r"[A-Za-z0-9@/:._\[\]\s-]+")
_CODE = frozenset(
    {"call", "c", "script-shell", "shell", "node-options", "init-module", "git", "userconfig", "globalconfig"}
)


def npm_fault(cwd: Path) -> str:
    """Why npx may not be started in that folder; empty when it may."""
    file = _project(cwd) / ".npmrc"
    if not is_file(file):
        return ""
    try:
        with reading(file) as stream:
            text = stream.read(_MOST + 1).decode("utf-8", "replace")
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
    if len(text) > _MOST:
        return f"{file} is larger than {_MOST // 1024} KiB"
    refused = refused_keys(text)
    return f"{file} sets {', '.join(refused)}, which would run code" if refused else ""


def refused_keys(text: str) -> tuple[str, ...]:
    """The keys that run code, as written; and those that npm itself would only make out by expanding them."""
    found = []
    for line in re.split(r"[\r\n]+", text):
        if not line.strip() or line.lstrip()[0] in ";#":
            continue
        written = line.partition("=")[0].strip()
        key = _plain(written)
        if not _KEY.fullmatch(key) or key.removesuffix("[]").strip().lower() in _CODE:
            found.append(written)
    return tuple(found)


def _plain(key: str) -> str:
    """Without the quotes that INI files may have."""
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        try:
            return str(json.loads(f'"{key[1:-1]}"'))
        except ValueError:
            return key[1:-1]
    return key


def _project(cwd: Path) -> Path:
    """The folder that npm takes for the project's."""
    for folder in (cwd, *cwd.parents):
        if any((folder / name).exists() for name in ("package.json", "node_modules")):
            return folder
    return cwd
