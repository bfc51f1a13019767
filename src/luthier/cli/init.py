"""`luthier init`: a small project that works as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from luthier.cli.options import OK, command

TEMPLATE = Path(__file__).with_name("project")

_RENAMED = {"gitignore": ".gitignore"}  # a real .gitignore inside the package would act on the package


@command
def init(
    folder: Annotated[Path, typer.Argument(help="Where; made if it does not exist.")] = Path(),
) -> int:
    """Write a working project: a server, an ensemble, a test."""
    from luthier.cli.render import echo
    from luthier.errors import Fault, InputError

    files = {folder / _target(source): source for source in sorted(TEMPLATE.rglob("*")) if _is_part(source)}
    existing = [path for path in files if path.exists()]
    if existing:
        raise InputError(
            [Fault("this file exists already and is left alone", file=str(path)) for path in existing],
            hint="Choose another folder, or move these away.",
        )
    for path, source in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
        echo(f"wrote {path}")
    there = "" if folder == Path() else f"cd {folder} && "
    echo(f"\nTry it:\n  {there}luthier run hello -i name=you")
    return OK


def _is_part(source: Path) -> bool:
    return source.is_file() and "__pycache__" not in source.parts


def _target(source: Path) -> Path:
    inside = source.relative_to(TEMPLATE)
    return inside.with_name(_RENAMED.get(inside.name, inside.name))
