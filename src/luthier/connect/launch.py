"""From an entry to a process that may be started: the command looked up, references expanded, all checked.

The list of commands is only the first door: `spec.commands` judges the arguments and `spec.variables` the
variables. Whatever is refused here fails this server alone, before anything is started, with the place in
the file that says it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from luthier.connect.environment import inherited
from luthier.connect.isolation import isolated
from luthier.connect.profiled import draft_of
from luthier.connect.references import INSTEAD, expanded, written_out
from luthier.connect.start import Draft, refuse, variables, written
from luthier.errors import ConnectError, UnresolvedReferenceError
from luthier.spec.commands import ArgumentFault, examine, is_allowed
from luthier.spec.npmrc import npm_fault
from luthier.spec.places import folder, is_folder, script_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry
    from luthier.wire import StdioLaunch


def prepare(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> StdioLaunch:
    """How to start the server of an entry. Raises ConnectError that no second try heals. Starts nothing."""
    try:
        return _prepare(entry, registry, environ)
    except UnresolvedReferenceError as error:
        raise ConnectError(
            f"Server {entry.id!r} cannot be started: {error.message}",
            server=entry.id,
            phase="spawn",
            retryable=False,
            hint=error.hint,
        ) from error


def _prepare(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> StdioLaunch:
    if fault := written_out(entry, registry):
        refuse(entry, fault[1], *fault[0], hint=INSTEAD)
    if entry.launch is not None:
        draft = draft_of(entry, entry.launch, registry, environ)
    elif registry.environment == "production":
        refuse(
            entry,
            "in production a server is started by a launch profile, not by a command",
            "command",
            hint="Write a profile under `launch_profiles` in luthier.yaml, and `launch: NAME` here.",
        )
    else:
        draft = _by_command(entry, registry, environ)
    return isolated(entry, draft, registry)


def _by_command(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> Draft:
    command = expanded(entry, environ, entry.command or "", "command")
    args = tuple(expanded(entry, environ, text, "args", index) for index, text in enumerate(entry.args))
    env = variables(entry, environ, inherited(environ, ()))
    cwd = _directory(entry, registry, environ)
    executable = _executable(entry, registry, command, env)
    plan = examine(command, args)
    if isinstance(plan, ArgumentFault):
        _refuse_argument(entry, command, args, plan)
    if command in ("npx", "npm", "pnpx", "bunx") and (why := npm_fault(cwd)):
        refuse(entry, why, "cwd" if entry.cwd else "command", hint="Let the server run in another folder.")
    if plan.script is not None:
        _check_script(entry, cwd / args[plan.script], plan.script)
    return Draft(
        argv=(executable, *args),
        env=_with_path(env, executable),
        cwd=cwd,
        script=None if plan.script is None else cwd / args[plan.script],
        sandbox=entry.sandbox,
    )


def _executable(entry: ServerEntry, registry: ServerRegistry, command: str, env: Mapping[str, str]) -> str:
    allowed = registry.allowed_commands
    if not is_allowed(command, allowed):
        bare = Path(command).name
        hint = f"Write `command: {bare}`." if bare != command and bare in allowed else ""
        refuse(
            entry,
            f"the command {written(entry.command or '')} is not allowed; by name, {', '.join(allowed)} are",
            "command",
            hint=hint or "A project can list more under `allowed_commands`.",
        )
    found = find_command(command, env.get("PATH", os.defpath))
    if found is None:
        refuse(
            entry,
            f"the command {command!r} is neither beside {sys.executable} nor on the PATH",
            "command",
            hint=f"Install {command}, or start Luthier with a PATH that holds it.",
        )
    return str(found)


def find_command(command: str, path: str) -> Path | None:
    """The program of a bare name: beside the running interpreter first, then on that search path."""
    beside = Path(sys.executable).parent / command
    found = str(beside) if _runnable(beside) else shutil.which(command, path=path)
    return None if found is None else Path(found).absolute()


def _runnable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:  # in a folder that is not ours to look into
        return False


def _refuse_argument(
    entry: ServerEntry, command: str, args: tuple[str, ...], fault: ArgumentFault
) -> NoReturn:
    if fault.index < 0:
        refuse(entry, f"the command {command} {fault.message}", "args" if args else "command")
    refuse(
        entry,
        f"the argument {written(entry.args[fault.index])} of {command} is refused: it {fault.message}",
        "args",
        fault.index,
        hint="Start a script, a module (-m NAME) or a package by its bare name; its own arguments follow it.",
    )


def _check_script(entry: ServerEntry, path: Path, index: int) -> None:
    if why := script_fault(path):
        refuse(entry, f"the script {written(entry.args[index])} {why}", "args", index)


def _directory(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> Path:
    if entry.cwd is None:
        return registry.root
    cwd = folder(registry.root, expanded(entry, environ, entry.cwd, "cwd"))
    if not is_folder(cwd):
        refuse(entry, f"its working directory {written(entry.cwd)} is not there", "cwd")
    return cwd


def _with_path(env: dict[str, str], executable: str) -> dict[str, str]:
    """What is installed beside the command must be found by it too: `npx` looks for `node`."""
    directory = str(Path(executable).parent)
    path = env.get("PATH", os.defpath)
    return env | {"PATH": path if directory in path.split(os.pathsep) else f"{directory}{os.pathsep}{path}"}
