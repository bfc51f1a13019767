"""Whether a server that is a process could ever be started, as far as its entry says it without references.

What is behind a reference is not looked at: the launch itself will judge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.secrets import expand, find
from luthier.spec.commands import ArgumentFault, examine, is_allowed
from luthier.spec.places import folder, is_folder, script_fault
from luthier.spec.variables import name_fault, value_fault
from luthier.spec.words import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from luthier.errors import Fault
    from luthier.spec.project import Project, ServerEntry


def check_launch(entry: ServerEntry, project: Project) -> Iterator[Fault]:
    """Warnings: they cost this server only. Looks whether files are there, and into none."""
    if entry.command is None:
        return
    command, cwd = _literal(entry.command), _literal(entry.cwd or "")
    yield from _check_command(entry, command, project)
    if entry.disabled:
        return
    yield from _check_isolation(entry, project)
    yield from _check_variables(entry)
    place = None if cwd is None else folder(project.root, cwd)
    if place is not None and not is_folder(place):
        yield _fault(entry, f"the working directory {quoted(entry.cwd or str(place))} is not there", "cwd")
        place = None
    if command is not None:
        yield from _check_arguments(entry, command, place)


def _check_command(entry: ServerEntry, command: str | None, project: Project) -> Iterator[Fault]:
    if command is None or is_allowed(command, project.allowed_commands):
        return
    message = f"{quoted(command)} is not in `allowed_commands`"
    if command in project.allowed_commands:
        message = f"{quoted(command)} is not the bare name of a command"
    allowed = f"allowed here: {listed(project.allowed_commands)}"
    yield _fault(entry, message, "command", suggestion=allowed)


def _check_isolation(entry: ServerEntry, project: Project) -> Iterator[Fault]:
    if project.environment == "production":
        yield _fault(entry, "in production it needs a sandbox, and this version has none", "command")
    elif entry.sandbox.mode == "required":
        yield _fault(entry, "it must run in a sandbox, and this version has none", "sandbox")


def _check_variables(entry: ServerEntry) -> Iterator[Fault]:
    for index, name in enumerate(entry.inherit_env):
        if why := name_fault(name):
            yield _fault(entry, f"{quoted(name)} {why}", "inherit_env", index)
    for name, text in entry.env.items():
        if why := name_fault(name):
            yield _fault(entry, f"{quoted(name)} {why}", "env", name)
        elif why := value_fault(_literal(text) or ""):
            yield _fault(entry, f"the value of {quoted(name)} {why}", "env", name)


def _check_arguments(entry: ServerEntry, command: str, place: Path | None) -> Iterator[Fault]:
    """What is said of an argument depends on those before it, so it holds up to the first reference.

    `place` is where a script is looked for; None where that is not known.
    """
    literal = [_literal(text) for text in entry.args]
    known = literal.index(None) if None in literal else len(literal)
    plan = examine(command, [text or "" for text in literal])
    if isinstance(plan, ArgumentFault):
        if 0 <= plan.index < known:
            said = f"the argument {quoted(entry.args[plan.index])} of {quoted(command)}"
            yield _fault(entry, f"{said} is refused: it {plan.message}", "args", plan.index)
        elif plan.index < 0 and known == len(literal):
            key = "args" if entry.args else "command"
            yield _fault(entry, f"the command {quoted(command)} {plan.message}", key)
    elif place is not None and plan.script is not None and plan.script < known:
        script = literal[plan.script] or ""
        why = script_fault(place / script)
        if why:
            yield _fault(entry, f"the script {quoted(script)} {why}", "args", plan.script)


def _literal(text: str) -> str | None:
    """The text as the launch would use it; None where references decide that."""
    return None if find(text) else expand(text, {}, place="")


def _fault(entry: ServerEntry, message: str, *keys: str | int, suggestion: str = "") -> Fault:
    cost = f"the server {quoted(entry.id)} will not start"
    return entry.origin.fault(f"{message}: {cost}", *keys, suggestion=suggestion, warning=True)
