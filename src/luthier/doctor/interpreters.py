"""The interpreters and runners that servers are started with: which are here, and which are needed."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from luthier.connect.launch import find_command
from luthier.doctor.finding import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIXES = {
    "npx": "Install Node.js with npm: apt-get install nodejs npm",
    "node": "Install Node.js: apt-get install nodejs",
    "uvx": "Install uv: pip install uv",
}


def interpreters(case: Case) -> Iterator[Finding]:
    said = f"Python {platform.python_version()}, {sys.executable}"
    yield Finding(name="python", status="ok", said=said)
    path = case.environ.get("PATH", os.defpath)
    for command in case.project.allowed_commands:
        found = find_command(command, path)
        needed = [
            entry.id
            for entry in case.project.servers.values()
            if entry.command == command and not entry.disabled
        ]
        if found is not None:
            yield Finding(name=command, status="ok", said=str(found))
            continue
        fix = _FIXES.get(command, f"Install {command}, or start Luthier with a PATH that holds it.")
        if needed:
            said = f"it is not here, and needed by {', '.join(needed)}"
            yield Finding(name=command, status="broken", said=said, fix=fix)
        else:
            yield Finding(name=command, status="off", said="it is not here; no server needs it", fix=fix)
