"""From an entry that names a launch profile to the draft of its start: all of it the operator's word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.connect.sandbox.mounts import interpreter_of
from luthier.connect.start import Draft, Pinned, refuse, variables, written
from luthier.spec.commands import ArgumentFault
from luthier.spec.places import is_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.registry import ServerRegistry
    from luthier.spec import LaunchProfile, ServerEntry
    from luthier.spec.project import Launch

HOME = "/home/server"
"""The home of a server in a sandbox: an empty folder."""

_PATH = "/usr/local/bin:/usr/bin:/bin"
_KEPT = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")


def draft_of(
    entry: ServerEntry, launch: Launch, registry: ServerRegistry, environ: Mapping[str, str]
) -> Draft:
    """Raises ConnectError for whatever the profile does not allow."""
    profile = registry.launch_profiles.get(launch.profile)
    if profile is None:
        there = ", ".join(registry.launch_profiles) or "none"
        refuse(
            entry,
            f"there is no launch profile {written(launch.profile)}",
            "launch",
            hint=f"Launch profiles of this project: {there}.",
        )
    name, why = profile.fault(launch.values)
    if name:
        refuse(entry, f"the value of {written(name)} {why}", "launch", "values", name)
    executable, script = Path(profile.executable), _script(entry, profile)
    pinned = [Pinned(executable, "the program", ("executable",), profile.sha256, executable=True)]
    env = _env(entry, profile, environ)
    interpreter = interpreter_of(executable, env["PATH"])
    if interpreter is not None:
        pinned.append(Pinned(interpreter, "the interpreter", ("executable",), executable=True))
    if script is not None:
        pinned.append(Pinned(script, "the script", ("args",), profile.script_sha256))
    return Draft(
        argv=(profile.executable, *profile.filled(launch.values)),
        env=env,
        cwd=_cwd(entry, profile),
        script=script,
        sandbox=profile.sandbox,
        keys=("launch",),
        pinned=tuple(pinned),
        umask=0o077,
    )


def _script(entry: ServerEntry, profile: LaunchProfile) -> Path | None:
    """The script, by what the program is and by what the link it may be leads to."""
    script = None
    if "\0" in profile.executable:
        refuse(
            entry,
            f"the launch profile {written(profile.name)} names no program: its path holds a NUL",
            "launch",
        )
    for path in (profile.executable, os.path.realpath(profile.executable)):
        command = os.path.basename(path)  # noqa: PTH119  (a name, no path)
        plan = profile.judged(command)
        if isinstance(plan, ArgumentFault):
            said = f"the program {command}" if plan.index < 0 else f"its argument {plan.index + 1}"
            refuse(
                entry,
                f"the launch profile {written(profile.name)} is refused: {said} {plan.message}",
                "launch",
            )
        if plan.script is not None:
            script = Path(profile.args[plan.script])
    return script


def _env(entry: ServerEntry, profile: LaunchProfile, environ: Mapping[str, str]) -> dict[str, str]:
    for key, names in (("inherit_env", entry.inherit_env), ("env", entry.env)):
        for name in names:
            if name not in profile.env:
                refuse(
                    entry,
                    f"{written(name)} is not among the variables of its launch profile",
                    key,
                    hint="The operator can list its name under `env` of the profile.",
                )
    directory = str(Path(profile.executable).parent)
    path = _PATH if directory in _PATH.split(":") else f"{directory}:{_PATH}"
    base = {name: environ[name] for name in _KEPT if name in environ}
    return variables(entry, environ, {**base, "PATH": path, "HOME": HOME})


def _cwd(entry: ServerEntry, profile: LaunchProfile) -> Path | None:
    if profile.cwd is None:
        return None
    if not is_folder(Path(profile.cwd)):
        refuse(
            entry,
            f"the working directory {written(profile.cwd)} of its launch profile is not there",
            "launch",
        )
    return Path(profile.cwd)
