"""Where the files of a server lie. Whatever a path is made of, it is there or it is not: no look raises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def folder(root: Path, cwd: str | None) -> Path:
    """The working directory that an entry means."""
    return located(root, cwd or "")


def located(root: Path, text: str) -> Path:
    """The place that a written path means: taken from the project's folder, `~` being a home."""
    path = Path(text)
    try:
        return root / path.expanduser()
    except RuntimeError:  # the home of nobody
        return root / path


def real(path: Path) -> Path:
    """Where it leads, its links followed. Those in circles lead nowhere; `Path.resolve` raises for them."""
    return Path(os.path.realpath(path))


def reading(path: Path) -> BinaryIO:
    """The file, opened to be read. A pipe that nobody writes into is not waited for. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(handle, True)  # whoever writes into a pipe, as shells let commands do, is waited for
    return os.fdopen(handle, "rb")


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # it is too long, or not for us to see
        return False


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def script_fault(path: Path) -> str:
    """Why no script can be run from there; empty when it is a file."""
    if is_file(path):
        return ""
    return "is not a file" if is_folder(path) else "is not there"
