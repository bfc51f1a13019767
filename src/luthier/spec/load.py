"""Reads a file or a text of YAML 1.2 into a Document."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import Fault, SpecError
from luthier.spec.compose import Composer
from luthier.spec.document import Document, Text
from luthier.spec.places import reading

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_BYTES = 1024 * 1024
SUFFIXES = (".yaml", ".yml")


def load(source: Path | str | BinaryIO, *, file: str | None = None) -> Document:
    """Read a file (a Path, or open) or a text (a str). `file` is what faults call it. Raises SpecError."""
    if isinstance(source, Path):
        file = str(source) if file is None else file
        return Composer(file, read_text(source, file)).document()
    file = file or ""
    if not isinstance(source, str):
        return Composer(file, _read(source, file, MAX_BYTES)).document()
    if len(source) > MAX_BYTES:
        raise SpecError([_too_large(file, MAX_BYTES)])
    return Composer(file, source.removeprefix("\ufeff")).document()


def read_text(path: Path, file: str, limit: int = MAX_BYTES) -> str:
    """The text of a file that people write. Raises SpecError where it is none, or too large."""
    try:
        with reading(path) as stream:
            return _read(stream, file, limit)
    except OSError as error:
        raise SpecError([Fault(f"the file cannot be read: {error.strerror}", file)]) from error


def files_in(folder: Path, *, file: str | None = None) -> list[Path]:
    """The YAML files of a folder; none where there is no folder. Raises SpecError where it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        where = str(folder) if file is None else file
        raise SpecError([Fault(f"the folder cannot be read: {error.strerror}", where)]) from error


def _read(stream: BinaryIO, file: str, limit: int) -> str:
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise SpecError([_too_large(file, limit)])
    return _decoded(data, file)


def _too_large(file: str, limit: int) -> Fault:
    return Fault(f"the file is larger than {limit // 1024} KiB", file)


def _decoded(data: bytes, file: str) -> str:
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if utf16 else "utf-8"
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = Text(data[: error.start].decode(encoding, "ignore").removeprefix("\ufeff"))
        line, column = before.at(len(before.text))
        message = (
            f"this is not {encoding.upper()} text: the byte 0x{data[error.start]:02x} does not belong here"
        )
        raise SpecError([Fault(message, file, line, column, suggestion="save the file as UTF-8")]) from error
