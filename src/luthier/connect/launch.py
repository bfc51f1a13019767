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
from luthier.errors import ConnectError, UnresolvedReferenceError
from luthier.secrets import expand
from luthier.spec.commands import ArgumentFault, examine, is_allowed
from luthier.spec.places import folder, is_folder, script_fault
from luthier.spec.variables import name_fault, value_fault
from luthier.text import escape, one_line
from luthier.wire import StdioLaunch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.registry import ServerRegistry
    from luthier.spec import ServerEntry


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
    _check_kind(entry, registry)
    command = _expanded(entry, environ, entry.command or "", "command")
    args = tuple(_expanded(entry, environ, text, "args", index) for index, text in enumerate(entry.args))
    env = _env(entry, environ)
    cwd = _directory(entry, registry, environ)
    executable = _executable(entry, registry, command, env)
    plan = examine(command, args)
    if isinstance(plan, ArgumentFault):
        _refuse_argument(entry, command, args, plan)
    if plan.script is not None:
        _check_script(entry, cwd / args[plan.script], plan.script)
    return StdioLaunch(
        server=entry.id,
        argv=(executable, *args),
        env=_with_path(env, executable),
        cwd=str(cwd),
        max_message_bytes=entry.max_message_bytes,
    )


def _check_kind(entry: ServerEntry, registry: ServerRegistry) -> None:
    if registry.environment == "production":
        _refuse(
            entry,
            "in production it needs a launch profile and a sandbox, and this version has neither",
            hint="Set `environment: development` where that is acceptable.",
        )
    if entry.sandbox.mode == "required":
        _refuse(entry, "it must run in a sandbox, and this version has none", "sandbox")


def _executable(entry: ServerEntry, registry: ServerRegistry, command: str, env: Mapping[str, str]) -> str:
    allowed = registry.allowed_commands
    if not is_allowed(command, allowed):
        bare = Path(command).name
        hint = f"Write `command: {bare}`." if bare != command and bare in allowed else ""
        _refuse(
            entry,
            f"the command {_written(entry.command or '')} is not allowed; by name, {', '.join(allowed)} are",
            "command",
            hint=hint or "A project can list more under `allowed_commands`.",
        )
    beside = Path(sys.executable).parent / command
    found = str(beside) if _runnable(beside) else shutil.which(command, path=env.get("PATH", os.defpath))
    if found is None:
        _refuse(
            entry,
            f"the command {command!r} is neither beside {sys.executable} nor on the PATH",
            "command",
            hint=f"Install {command}, or start Luthier with a PATH that holds it.",
        )
    return str(Path(found).absolute())


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _refuse_argument(
    entry: ServerEntry, command: str, args: tuple[str, ...], fault: ArgumentFault
) -> NoReturn:
    if fault.index < 0:
        _refuse(entry, f"the command {command} {fault.message}", "args" if args else "command")
    _refuse(
        entry,
        f"the argument {_written(entry.args[fault.index])} of {command} is refused: it {fault.message}",
        "args",
        fault.index,
        hint="Start a script, a module (-m NAME) or a package by its bare name; its own arguments follow it.",
    )


def _check_script(entry: ServerEntry, path: Path, index: int) -> None:
    if why := script_fault(path):
        _refuse(entry, f"the script {_written(entry.args[index])} {why}", "args", index)


def _directory(entry: ServerEntry, registry: ServerRegistry, environ: Mapping[str, str]) -> Path:
    if entry.cwd is None:
        return registry.root
    cwd = folder(registry.root, _expanded(entry, environ, entry.cwd, "cwd"))
    if not is_folder(cwd):
        _refuse(entry, f"its working directory {_written(entry.cwd)} is not there", "cwd")
    return cwd


def _env(entry: ServerEntry, environ: Mapping[str, str]) -> dict[str, str]:
    for index, name in enumerate(entry.inherit_env):
        if fault := name_fault(name):
            _refuse(entry, f"{_written(name)} {fault}", "inherit_env", index)
    env = inherited(environ, entry.inherit_env)
    for name, text in entry.env.items():
        if fault := name_fault(name):
            _refuse(entry, f"{_written(name)} {fault}", "env", name)
        value = _expanded(entry, environ, text, "env", name)
        if fault := value_fault(value):
            _refuse(entry, f"the value of {name} {fault}", "env", name)
        env[name] = value
    return env


def _with_path(env: dict[str, str], executable: str) -> dict[str, str]:
    """What is installed beside the command must be found by it too: `npx` looks for `node`."""
    directory = str(Path(executable).parent)
    path = env.get("PATH", os.defpath)
    return env | {"PATH": path if directory in path.split(os.pathsep) else f"{directory}{os.pathsep}{path}"}


def _written(text: str) -> str:
    """Text of the entry as it is written, for people: with its references expanded it may hold secrets."""
    return repr(one_line(text))


def _expanded(entry: ServerEntry, environ: Mapping[str, str], text: str, *keys: str | int) -> str:
    return expand(text, environ, place=entry.origin.place(*keys))


def _refuse(entry: ServerEntry, why: str, *keys: str | int, hint: str = "") -> NoReturn:
    place = escape(entry.origin.place(*keys))
    raise ConnectError(
        f"Server {entry.id!r} cannot be started: {f'{place}: ' if place else ''}{why}.",
        server=entry.id,
        phase="spawn",
        retryable=False,
        hint=hint,
    )
