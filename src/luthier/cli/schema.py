"""`luthier schema`: JSON Schemas of the files that people write, for editors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from luthier.cli.options import OK, command


class Kind(StrEnum):
    """The files that have one."""

    ensemble = "ensemble"
    project = "project"


@command
def schema(kind: Annotated[Kind, typer.Argument(help="Which file.")]) -> int:
    """Print the JSON Schema of a file, for editors; `luthier check` knows more."""
    from luthier.cli.render import echo, to_json
    from luthier.spec.schema import SCHEMAS

    echo(to_json(SCHEMAS[kind.value]))
    return OK
