"""The ensembles of a project: those given in Python, then the files of its `ensembles/` folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from luthier.errors import NotFoundError, SpecError
from luthier.spec import Ensemble, Project, ensemble_files, load_ensemble, read_ensemble
from luthier.spec.paths import FOLDER
from luthier.text import near

EnsembleSource = str | Path | Mapping[str, Any] | Ensemble


class Library:
    """Ensembles by name. A broken file costs itself only, and says why when it is asked for.

    A folder that cannot be read is broken under its own path, and so is all that is not known from elsewhere.
    """

    def __init__(self, project: Project, given: Iterable[EnsembleSource] = ()) -> None:
        self._root = project.root
        self._given = {ensemble.name: ensemble for ensemble in map(_read, given)}
        self._read = dict(self._given)
        self._broken: dict[str, SpecError] = {}
        self._scanned: object = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names in order, those of broken files by the file's stem."""
        self._scan()
        return tuple(sorted({*self._read, *self._broken}))

    def reread(self) -> bool:
        """Read the folder again, if a file of it has changed since; whether one has."""
        if self._scanned is None or self._scanned == self._version():
            return False
        self._scanned, self._read, self._broken = None, dict(self._given), {}
        self._scan()
        return True

    def get(self, source: EnsembleSource) -> Ensemble:
        """The ensemble of that name, or the one that a file or mapping describes.

        Raises SpecError for one that cannot be read, NotFoundError with near names for one that is not there.
        """
        if not isinstance(source, str):
            return _read(source)
        if source not in self._read and _is_path(source):
            return load_ensemble(Path(source))
        if source not in self._read:
            self._scan()
        if source in self._read:
            return self._read[source]
        folder = self._root / FOLDER
        if broken := self._broken.get(source) or self._broken.get(str(folder)):
            raise broken
        where = f"in {folder}" if folder.is_dir() else f"({folder} does not exist)"
        raise NotFoundError("ensemble", source, near=near(source, self.names), where=where)

    def begun(self, name: str, file: str) -> Ensemble:
        """The ensemble that a run began with: by its file where it was read from one, else by its name."""
        if file and name not in self._read and Path(file).is_file():
            return load_ensemble(Path(file))
        return self.get(name)

    def _scan(self) -> None:
        if self._scanned is not None:
            return
        self._scanned = self._version()
        for path in self._files():
            try:
                ensemble = load_ensemble(path)
            except SpecError as error:
                self._broken[path.stem] = error
            else:
                self._read.setdefault(ensemble.name, ensemble)

    def _files(self) -> list[Path]:
        try:
            return ensemble_files(self._root)
        except SpecError as error:
            self._broken[str(self._root / FOLDER)] = error
            return []

    def _version(self) -> object:
        """What changes when a file does."""
        return tuple((path.name, *stamp(path)) for path in self._files())


def stamp(path: Path) -> tuple[int, int]:
    """What changes when the file does; zeros for one that is not there."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def _is_path(text: str) -> bool:
    return text.endswith((".yaml", ".yml")) or os.sep in text


def _read(source: EnsembleSource) -> Ensemble:
    match source:
        case Ensemble():
            return source
        case str() | Path():
            return load_ensemble(Path(source))
        case _:
            return read_ensemble(source)
