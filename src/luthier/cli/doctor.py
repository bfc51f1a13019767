"""`luthier doctor`: what works here, and what to do where something does not."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import typer  # noqa: TC002  (typer reads the annotations when it runs)

from luthier.cli.options import FAILED, OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from luthier.doctor import Finding


@command
def doctor(context: typer.Context, json: JsonOption = False) -> int:
    """Say what works here: interpreters, sandbox, store, audit, secrets, servers. Starts no server."""
    import msgspec

    from luthier.cli.render import echo, to_json
    from luthier.doctor import examine
    from luthier.errors import LuthierError
    from luthier.store import with_registered

    project = found_project(context)
    with suppress(LuthierError):  # what is wrong with the store is found below
        project = with_registered(project, os.environ)
    found = examine(project, os.environ)
    broken = any(finding.status == "broken" for findings in found.values() for finding in findings)
    if json:
        checks = {subject: msgspec.to_builtins(findings) for subject, findings in found.items()}
        echo(to_json({"ok": not broken, "environment": project.environment, "checks": checks}))
    else:
        for subject, findings in found.items():
            _show(subject, findings)
    return FAILED if broken else OK


def _show(subject: str, findings: tuple[Finding, ...]) -> None:
    from luthier.cli.render import echo, paint
    from luthier.text import escape

    if not findings:
        return
    echo(paint(subject, "bold"))
    width = max(len(finding.name) for finding in findings)
    colours = {"ok": "green", "off": "dim", "warning": "yellow", "broken": "bold red"}
    for finding in findings:
        status = paint(f"{finding.status:<7}", colours[finding.status])
        echo(f"  {status}  {escape(finding.name):<{width}}  {escape(finding.said)}")
        if finding.fix and finding.status != "ok":
            echo(f"  {'':<7}  {'':<{width}}  {escape(finding.fix)}")
