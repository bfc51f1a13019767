"""Where the files of a server lie. Whatever a path is made of, it is there or it is not: no look raises."""

from __future__ import annotations

from pathlib import Path


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
