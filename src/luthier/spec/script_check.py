"""Looks at the Python files that a project names, without importing them."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import Fault
from luthier.spec.places import reading
from luthier.spec.scripts import entry_point, find_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec.origin import Origin

_MAX_SCRIPT_BYTES = 4 * 1024 * 1024


def script_faults(
    root: Path, script: str, origin: Origin, *keys: str | int, entry: bool = False
) -> Iterator[Fault]:
    """What keeps a file from being run, at the key that names it; with `entry`, that it has no function."""
    try:
        path = find_script(root, script)
        with reading(path) as stream:
            source = stream.read(_MAX_SCRIPT_BYTES).decode("utf-8-sig")
        if entry:
            entry_point(source, Path(script).stem)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(source)
    except SyntaxError as error:
        yield Fault(f"{script} is not Python: {error.msg}", script, error.lineno or 0, error.offset or 0)
    except UnicodeDecodeError:
        yield origin.fault(f"{script} is not UTF-8 text", *keys)
    except (OSError, RecursionError, MemoryError) as error:
        yield origin.fault(f"{script} cannot be read: {error}", *keys)
    except ValueError as error:
        yield origin.fault(str(error), *keys)
