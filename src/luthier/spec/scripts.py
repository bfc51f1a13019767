"""The scripts of `code` steps: where they may lie and what they must define. Parsed here, never imported."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from luthier.spec.places import real
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "scripts"

_SCHEME = "script://"
_VERSION = re.compile(r"@[^/@]*$")


def script_path(written: str) -> str:
    """`scripts/a/b.py` for `scripts/a/b`, `scripts/a/b.py`, `script://a/b` and any of them with `@version`.

    Raises ValueError, in plain words, for what does not name a Python file below `scripts/`.
    """
    text = written.strip().removeprefix("./")
    name = _VERSION.sub("", text.removeprefix(_SCHEME)).removeprefix(f"{FOLDER}/")
    shown = quoted(written)
    if "\n" in text or "(" in text:
        raise ValueError("`script` names a file; inline code is not run: write it into a file under scripts/")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or "\\" in name or "\0" in name:
        raise ValueError(f"{shown} does not lie below scripts/")
    if not text.startswith((_SCHEME, f"{FOLDER}/")):
        raise ValueError(f"{shown} does not lie below scripts/: write scripts/{name}")
    if path.suffix in (".ts", ".js", ".mjs"):
        raise ValueError(f"{shown} is not Python: scripts are written in Python")
    return f"{FOLDER}/{path if path.suffix == '.py' else f'{path}.py'}"


def find_script(root: Path, script: str) -> Path:
    """The file of a script, links followed. Raises ValueError where there is none inside `scripts/`."""
    folder, path = real(root / FOLDER), root / script
    stem = path.stem
    for candidate in (path, path.with_stem(stem.replace("-", "_")), path.with_stem(stem.replace("_", "-"))):
        if candidate.is_file():
            resolved = real(candidate)
            if not resolved.is_relative_to(folder):
                raise ValueError(f"{script} is a link that leads out of {FOLDER}/")
            return resolved
    raise ValueError(f"there is no file {script} in {root}")


def entry_point(source: str, stem: str) -> str:
    """The name of the function that a script offers.

    Raises ValueError where it has none, SyntaxError where it is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of doubtful escapes and the like: the script's own affair
        tree = ast.parse(source)
    defined = set(_defined(tree.body))
    names = tuple(dict.fromkeys(entry_names(stem)))
    for name in names:
        if name in defined:
            return name
    raise ValueError(f"it defines no function named {' or '.join(names)}")


def entry_names(stem: str) -> tuple[str, ...]:
    """The names that a script's function may have, best first."""
    return ("run", "default", stem.replace("-", "_"))


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a module binds, in branches too."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.If() | ast.Try():
                yield from _defined(node.body)
                yield from _defined(node.orelse)
