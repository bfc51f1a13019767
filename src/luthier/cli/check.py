"""`luthier check`: every fault of the project's files, without starting anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from luthier.cli.options import OK, USAGE, JsonOption, Settings, command


@command
def check(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders; default: the project here.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Check project and ensembles; print every fault as file:line:column."""
    import os
    import sys
    from functools import partial

    import msgspec

    from luthier.cli.render import echo, show_faults, to_json
    from luthier.runtime.kept import kept_tools
    from luthier.spec import check_paths

    chosen: Settings = context.obj
    known = partial(kept_tools, environ=os.environ)
    faults = check_paths(paths or ([chosen.project] if chosen.project else [Path.cwd()]), known=known)
    errors = [fault for fault in faults if not fault.warning]
    if json:
        echo(to_json({"ok": not errors, "faults": [msgspec.to_builtins(fault) for fault in faults]}))
    else:
        show_faults(faults)
        counted = f"{len(errors)} error{'s' if len(errors) != 1 else ''}"
        echo("ok" if not errors else counted, sys.stderr if errors else sys.stdout)
    return USAGE if errors else OK
