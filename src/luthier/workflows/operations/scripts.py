"""Scripts of `code` steps, loaded by file: never through `sys.path`, and again when the file has changed."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

from luthier.errors import StepError
from luthier.spec.scripts import entry_names, find_script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import CodeType

    Function = Callable[[Any], Any]


class _Loader(SourceFileLoader):
    """Reads the file itself, never a compiled copy of it, and leaves none beside it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Scripts:
    """The functions of scripts by path, for any number of threads; each version of a file is run once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Path, str], tuple[Path, Path, object]] = {}
        self._loaded: dict[Path, tuple[object, Function]] = {}
        self._locks: dict[Path, threading.Lock] = {}

    def find(self, root: Path, script: str) -> Path:
        """The file of a script, links followed, as `find_script` says. Raises ValueError.

        What was found before holds as long as the very same file still stands in that place.
        """
        known = self._found.get((root, script))
        if known is not None:
            place, path, version = known
            with suppress(OSError):
                if _version(place) == version:
                    return path
        path = find_script(root, script)
        place = root / script
        self._found[root, script] = place if place.exists() else path, path, _version(path)
        return path

    def cached(self, path: Path) -> Function | None:
        """The function, if the file has been loaded and not changed since."""
        known = self._loaded.get(path)
        return known[1] if known is not None and known[0] == _version(path) else None

    def load(self, path: Path) -> Function:
        """The function. Runs the file if need be, so it may raise anything; StepError where there is none."""
        with self._locks.setdefault(path, threading.Lock()):
            known = self.cached(path)
            if known is not None:
                return known
            version = _version(path)
            function = _function(load_module(path), path.stem)
            self._loaded[path] = version, function
            return function


def _version(path: Path) -> object:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_dev


def load_module(path: Path) -> Any:
    """The file as a module, entered in `sys.modules`, where dataclasses look their module up by name.

    Runs it, so it may raise anything.
    """
    name = f"luthier_script:{path}"
    loader = _Loader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _function(module: Any, stem: str) -> Function:
    names = tuple(dict.fromkeys(entry_names(stem)))
    for name in names:
        function = getattr(module, name, None)
        if callable(function):
            return function  # type: ignore[no-any-return]
    raise StepError("code", f"{stem}.py defines no function named {' or '.join(names)}")
