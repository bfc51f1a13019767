"""What `luthier check` does: finds a project's files, reads them all, tells every fault of every file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier.errors import Fault, SpecError
from luthier.spec.check import check_ensemble
from luthier.spec.check_patterns import check_patterns
from luthier.spec.check_project import check_project
from luthier.spec.check_tools import check_tools
from luthier.spec.load import files_in, load
from luthier.spec.read import examine, in_order
from luthier.spec.read_project import FILES, examine_project, find_project, read_project
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from luthier.spec.check_tools import KnownTools
    from luthier.spec.ensemble import Ensemble
    from luthier.spec.project import Project

FOLDER = "ensembles"

_OF_PROJECTS = frozenset({"mcpServers", "servers", "mcp", "environment", "allowed_commands", "expose_env"})
_OF_ENSEMBLES = frozenset({"ensemble", "steps", "flow"})


def check_paths(
    paths: Sequence[Path | str] = (),
    *,
    environ: Mapping[str, str] | None = None,
    known: Callable[[Project], KnownTools] | None = None,
) -> list[Fault]:
    """Every fault of the files and folders, and of the project around them, ordered by place.

    Without paths: the project of the working directory. Starts nothing, imports nothing, and resolves no
    reference but to see whether its variable is set. `known` tells what the servers' tools took when they
    were last listed; without it, arguments are not looked at.
    """
    checker = _Checker(os.environ if environ is None else environ, known or (lambda _: {}))
    for path in paths or [Path.cwd()]:
        checker.add(Path(path))
    return in_order(checker.faults())


def ensemble_files(root: Path) -> list[Path]:
    """The ensembles that lie in a project's folder for them. Raises SpecError where that cannot be read."""
    return _yaml_files(root / FOLDER)


class _Checker:
    """Gathers files first, so that each is read once, then reads and checks them project by project."""

    def __init__(self, environ: Mapping[str, str], known: Callable[[Project], KnownTools]) -> None:
        self._environ = environ
        self._known = known
        self._wanted: dict[Path | None, dict[Path, None]] = {}  # by project file
        self._faults: list[Fault] = []

    def add(self, path: Path) -> None:
        if path.is_dir():
            self._add_folder(path)
        elif not path.exists():
            self._faults.append(Fault("there is no such file or folder", _shown(path)))
        elif _is_project(path):
            self._want(path, self._files(path.parent / FOLDER))
        else:
            self._want(find_project(path.parent), [path])

    def faults(self) -> list[Fault]:
        for file, ensembles in self._wanted.items():
            self._check(file, list(ensembles))
        return self._faults

    def _add_folder(self, folder: Path) -> None:
        own = next((folder / name for name in FILES if (folder / name).is_file()), None)
        project = own or find_project(folder)
        files = self._files(folder / FOLDER) if own else [*self._files(folder), *self._files(folder / FOLDER)]
        if project and not files:
            files = self._files(project.parent / FOLDER)
        if not project and not files:
            message = f"there is no {FILES[0]} here or above, and no ensemble"
            self._faults.append(Fault(message, _shown(folder), suggestion="`luthier init` makes a project"))
            return
        self._want(project, files)

    def _files(self, folder: Path) -> list[Path]:
        try:
            return _yaml_files(folder)
        except SpecError as error:
            self._faults += [fault for fault in error.faults if fault not in self._faults]
            return []

    def _want(self, project: Path | None, files: Sequence[Path]) -> None:
        key = _found(project) if project else None
        self._wanted.setdefault(key, {}).update(dict.fromkeys(map(_found, files)))

    def _check(self, file: Path | None, wanted: list[Path]) -> None:
        project = self._read_project(file)
        near = self._files(file.parent / FOLDER) if file else []
        others = [path for path in map(_found, near) if path not in wanted]
        read = {path: self._read_ensemble(path, quiet=path in others) for path in [*wanted, *others]}
        known: dict[str, Ensemble] = {}
        for path, ensemble in read.items():
            if ensemble and ensemble.name in known and path in wanted:
                message = f"{known[ensemble.name].file} has the name {quoted(ensemble.name)} too"
                self._faults.append(ensemble.origin.fault(message, "ensemble"))
            elif ensemble:
                known[ensemble.name] = ensemble
        if project is None:
            return
        tools = self._known(project)
        unread = [path.stem for path, ensemble in read.items() if ensemble is None]
        for path, ensemble in read.items():
            if ensemble and path in wanted:
                self._faults += check_ensemble(ensemble, project, known, unread=unread)
                self._faults += check_tools(ensemble, project, tools)

    def _read_project(self, file: Path | None) -> Project | None:
        if file is None:
            return read_project({})
        try:
            document = load(file, file=_shown(file))
        except SpecError as error:
            self._faults += error.faults
            return None
        project, faults = examine_project(document, root=file.parent, path=file)
        self._faults += faults
        if project:
            self._faults += check_project(project, self._environ)
            self._faults += check_patterns(project)
        return project

    def _read_ensemble(self, path: Path, *, quiet: bool) -> Ensemble | None:
        try:
            ensemble, faults = examine(load(path, file=_shown(path)))
        except SpecError as error:
            ensemble, faults = None, list(error.faults)
        if not quiet:
            self._faults += faults
        return ensemble


def _is_project(path: Path) -> bool:
    """By its name, else by what it holds."""
    if path.name in FILES:
        return True
    try:
        data: Any = load(path).data
    except SpecError:
        return False
    if not isinstance(data, dict) or data.keys() & _OF_ENSEMBLES or isinstance(data.get("agents"), list):
        return False
    return bool(data.keys() & _OF_PROJECTS)


def _yaml_files(folder: Path) -> list[Path]:
    return [path for path in files_in(folder, file=_shown(folder)) if path.name not in FILES]


def _found(path: Path) -> Path:
    """The one way to write a path; a link has a path of its own, under which its faults are told."""
    return Path(os.path.normpath(path.absolute()))


def _shown(path: Path) -> str:
    """As seen from the working directory, where that is shorter."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
