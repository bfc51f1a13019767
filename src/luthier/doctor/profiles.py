"""Launch profiles: whether their files are there and nobody else could have written them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from luthier.connect.vouched import UnfitFileError, vouch
from luthier.doctor.finding import Case, Finding
from luthier.spec.commands import ArgumentFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import LaunchProfile

_FIX = "Let every file and folder on its way belong to root or this user, and be writable by nobody else."


def profiles(case: Case) -> Iterator[Finding]:
    used = {entry.launch.profile for entry in case.project.servers.values() if entry.launch}
    for name, profile in case.project.launch_profiles.items():
        why = _fault(profile)
        if not why:
            yield Finding(name=name, status="ok", said=profile.executable)
        else:
            yield Finding(name=name, status="broken" if name in used else "warning", said=why, fix=_FIX)


def _fault(profile: LaunchProfile) -> str:
    path = Path(profile.executable)
    plan = profile.judged(path.name)
    files = [(path, profile.sha256, True)]
    if not isinstance(plan, ArgumentFault) and plan.script is not None:
        files.append((Path(profile.args[plan.script]), profile.script_sha256, False))
    for file, sha256, executable in files:
        try:
            vouch(file, sha256=sha256, executable=executable).close()
        except UnfitFileError as error:
            return f"{file} {error.message}"
    return ""
