"""Whether a server that is a process could ever be started, as far as its entry says it without references.

What is behind a reference is not looked at: the launch itself will judge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from luthier.secrets import expand, find
from luthier.spec.commands import ArgumentFault, examine, is_allowed
from luthier.spec.places import folder, is_folder, script_fault
from luthier.spec.variables import name_fault, setting_fault, value_fault
from luthier.spec.words import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.errors import Fault
    from luthier.spec.project import Launch, Project, ServerEntry


class _Finding(NamedTuple):
    message: str
    keys: tuple[str | int, ...]
    suggestion: str = ""


def check_launch(entry: ServerEntry, project: Project) -> Iterator[Fault]:
    """Warnings: they cost this server only. Looks whether files are there, and into none."""
    if entry.command is None and entry.launch is None:
        return
    found = list(_command(entry, project)) if entry.disabled else [*_rules(entry, project)]
    if not entry.disabled:
        found += _places(entry, project)
    cost = f"the server {quoted(entry.id)} will not start"
    for finding in found:
        message = f"{finding.message}: {cost}"
        yield entry.origin.fault(message, *finding.keys, suggestion=finding.suggestion, warning=True)


def launch_faults(entry: ServerEntry, project: Project) -> tuple[Fault, ...]:
    """What bars an entry from being saved: rules that it breaks by what it says, wherever its files are."""
    if entry.command is None and entry.launch is None:
        return ()
    return tuple(
        entry.origin.fault(finding.message, *finding.keys, suggestion=finding.suggestion)
        for finding in _rules(entry, project)
    )


def _rules(entry: ServerEntry, project: Project) -> Iterator[_Finding]:
    yield from _command(entry, project)
    yield from _isolation(entry, project)
    yield from _variables(entry, project)
    if entry.command is not None and (command := _literal(entry.command)) is not None:
        yield from _arguments(entry, command)


def _command(entry: ServerEntry, project: Project) -> Iterator[_Finding]:
    if entry.launch is not None:
        yield from _profile(entry.launch, project)
        return
    command = _literal(entry.command or "")
    if project.environment == "production":
        hint = "write the profile under `launch_profiles`, and `launch: NAME` here"
        yield _Finding("in production a server is started by a launch profile", ("command",), hint)
    if command is None or is_allowed(command, project.allowed_commands):
        return
    message = f"{quoted(command)} is not in `allowed_commands`"
    if command in project.allowed_commands:
        message = f"{quoted(command)} is not the bare name of a command"
    yield _Finding(message, ("command",), f"allowed here: {listed(project.allowed_commands)}")


def _profile(launch: Launch, project: Project) -> Iterator[_Finding]:
    profile = project.launch_profiles.get(launch.profile)
    if profile is None:
        there = f"there are: {listed(project.launch_profiles) or 'none'}"
        yield _Finding(f"there is no launch profile {quoted(launch.profile)}", ("launch",), there)
        return
    name, why = profile.fault(launch.values)
    if name:
        keys = ("launch", "values", name) if name in launch.values else ("launch",)
        yield _Finding(f"the value of {quoted(name)} {why}", keys)


def _isolation(entry: ServerEntry, project: Project) -> Iterator[_Finding]:
    mode = project.sandbox_of(entry).mode
    if project.environment == "production" and mode in ("off", "auto"):
        key = "launch" if entry.launch else "sandbox"
        yield _Finding(f"in production the sandbox is required, not {quoted(mode)}", (key,))


def _variables(entry: ServerEntry, project: Project) -> Iterator[_Finding]:
    profile = project.launch_profiles.get(entry.launch.profile) if entry.launch else None

    def fault(name: str, why: str) -> str:
        if why:
            return why
        if profile is not None and name not in profile.env:
            return f"is not among the variables of the launch profile {quoted(profile.name)}"
        return ""

    for index, name in enumerate(entry.inherit_env):
        if why := fault(name, name_fault(name)):
            yield _Finding(f"{quoted(name)} {why}", ("inherit_env", index))
    for name, text in entry.env.items():
        if why := fault(name, setting_fault(name)):
            yield _Finding(f"{quoted(name)} {why}", ("env", name))
        elif why := value_fault(_literal(text) or ""):
            yield _Finding(f"the value of {quoted(name)} {why}", ("env", name))


def _arguments(entry: ServerEntry, command: str) -> Iterator[_Finding]:
    """What is said of an argument depends on those before it, so it holds up to the first reference."""
    literal = [_literal(text) for text in entry.args]
    known = literal.index(None) if None in literal else len(literal)
    plan = examine(command, [text or "" for text in literal])
    if not isinstance(plan, ArgumentFault):
        return
    if 0 <= plan.index < known:
        said = f"the argument {quoted(entry.args[plan.index])} of {quoted(command)}"
        yield _Finding(f"{said} is refused: it {plan.message}", ("args", plan.index))
    elif plan.index < 0 and known == len(literal):
        yield _Finding(
            f"the command {quoted(command)} {plan.message}", ("args" if entry.args else "command",)
        )


def _places(entry: ServerEntry, project: Project) -> Iterator[_Finding]:
    """Folders and files that are not there; nothing is said of those that a reference decides on."""
    cwd = _literal(entry.cwd or "")
    if entry.command is None or cwd is None:
        return
    place = folder(project.root, cwd)
    if not is_folder(place):
        yield _Finding(f"the working directory {quoted(entry.cwd or str(place))} is not there", ("cwd",))
        return
    command, literal = _literal(entry.command), [_literal(text) for text in entry.args]
    known = literal.index(None) if None in literal else len(literal)
    plan = examine(command or "", [text or "" for text in literal])
    if isinstance(plan, ArgumentFault) or plan.script is None or plan.script >= known:
        return
    script = literal[plan.script] or ""
    if why := script_fault(place / script):
        yield _Finding(f"the script {quoted(script)} {why}", ("args", plan.script))


def _literal(text: str) -> str | None:
    """The text as the launch would use it; None where references decide that."""
    return None if find(text) else expand(text, {}, place="")
