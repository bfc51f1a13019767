"""The corpus of launch escapes, and the attacker's folder that its entries point to."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML

CASES = Path(__file__).parents[1] / "cases" / "launch"


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `always`: refused in development too. `runs`: started by hand, its code is run."""

    name: str
    always: bool
    runs: bool
    command: str
    args: list[str]
    env: dict[str, str] = {}
    inherit_env: list[str] = []
    cwd: str | None = None
    stdin: str = ""

    def aimed(self, folder: Path, mark: Path) -> Vector:
        """The same with its places filled in."""
        names = {"DIR": str(folder), "MARK": str(mark), "PATH": os.environ["PATH"]}

        def filled(text: str) -> str:
            return re.sub(r"(?<!\$)\{(DIR|MARK|PATH)\}", lambda found: names[found[1]], text)

        return Vector(
            name=self.name,
            always=self.always,
            runs=self.runs,
            command=filled(self.command),
            args=[filled(text) for text in self.args],
            env={name: filled(text) for name, text in self.env.items()},
            inherit_env=self.inherit_env,
            cwd=filled(self.cwd) if self.cwd else None,
            stdin=filled(self.stdin),
        )

    @property
    def settles(self) -> bool:
        """Whether a profile is refused it too: other programs and scripts are an operator's to settle."""
        return self.always and self.command in ("python3", "node", "npx", "uvx", "bash", "sh", "env")

    def entry(self) -> dict[str, Any]:
        """As a project file would say it."""
        told = {"command": self.command, "args": self.args, "env": self.env, "max_retries": 0}
        told |= {"inherit_env": self.inherit_env} if self.inherit_env else {}
        return told | ({"cwd": self.cwd} if self.cwd else {})


def corpus() -> list[Vector]:
    reader = YAML(typ="safe", pure=True)
    return [
        msgspec.convert(case, Vector) for path in sorted(CASES.glob("*.yaml")) for case in reader.load(path)
    ]


def arm(folder: Path, mark: Path) -> None:
    """Fill the attacker's folder. Whatever in it is run makes the mark."""
    python, node, shell = (
        f"open({str(mark)!r}, 'w')\n",
        f"require('fs').writeFileSync('{mark}', '')\n",
        f"echo >'{mark}'\n",
    )
    files = {
        "evil.py": python + "def run(*_): pass\n",
        "skipped.py": f"this line is skipped\n{python}",
        "test_evil.py": python,
        "evil.txt": f">>> {python}",
        "package/__main__.py": python,
        "site/sitecustomize.py": python,
        "breaks.py": "import sys; sys.path.insert(0, sys.path[0]); breakpoint()\n",
        "none.py": "",
        "none.js": "",
        "none.mjs": "",
        "none.sh": "",
        "evil.cjs": node,
        "evil.mjs": f"import fs from 'fs'; fs.writeFileSync('{mark}', '');\n",
        "fork.js": "require('child_process').spawnSync(process.execPath, ['-p', '1'])\n",
        "asks.js": "require('asked')\n",
        "modules/asked/index.js": node,
        "dotenv": f"NODE_OPTIONS=--require={folder}/evil.cjs\n",
        "evil.sh": f"#!/bin/sh\n{shell}",
        "bin/node": f"#!/bin/sh\n{shell}",
        "npmrc": f"script-shell={folder}/evil.sh\n",
        "project/.npmrc": f"script-shell={folder}/evil.sh\nnode-options=--require={folder}/evil.cjs\n",
        "project/package.json": '{"name": "project", "version": "1.0.0"}',
        "npm/package.json": '{"name": "evil", "version": "1.0.0", "bin": {"evil": "evil.sh"}}',
        "npm/evil.sh": f"#!/bin/sh\n{shell}",
        "harmless/package.json": '{"name": "harmless", "version": "1.0.0", "bin": {"harmless": "run.js"}}',
        "harmless/run.js": "#!/usr/bin/env node\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    with zipfile.ZipFile(folder / "evil.zip", "w") as archive:
        archive.writestr("__main__.py", python)


def by_hand(vector: Vector) -> list[str] | None:
    """The argument list with its command looked up as Luthier would; None where it is not installed."""
    beside = Path(sys.executable).parent / vector.command
    found = str(beside) if "/" not in vector.command and beside.is_file() else shutil.which(vector.command)
    if found is None and "/" in vector.command:
        found = vector.command
    return None if found is None else [found, *vector.args]
