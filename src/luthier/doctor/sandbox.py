"""The sandbox: whether it works here, whether servers need it, and whether its limits can be kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from luthier.connect.sandbox import Works, working
from luthier.connect.sandbox.limits import Limits, controllers, inside, shortfall
from luthier.doctor.finding import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from luthier.doctor.finding import Status


def sandbox(
    case: Case,
    find: Callable[[], Works] = working,
    groups: Callable[[], Mapping[str, Path]] = controllers,
    *,
    root: bool | None = None,
) -> Iterator[Finding]:
    modes = {
        entry.id: case.project.sandbox_of(entry).mode
        for entry in case.project.servers.values()
        if entry.transport == "stdio" and not entry.disabled
    }
    required = [id for id, mode in modes.items() if mode == "required"]
    wished = [id for id, mode in modes.items() if mode == "auto"]
    works = find()
    if works.program:
        filtered = "are filtered" if works.filters else "cannot be filtered on this machine"
        said = f"{works.program} works; system calls {filtered}"
        yield Finding(name="bubblewrap", status="ok", said=said)
        yield from _limits(groups(), root=os.geteuid() == 0 if root is None else root)
    else:
        status: Status = "broken" if required else "warning" if wished else "off"
        needs = f"; needed by {', '.join(required)}" if required else ""
        yield Finding(name="bubblewrap", status=status, said=f"{works.why}{needs}", fix=works.fix)
    bare = [id for id, mode in modes.items() if mode == "off"]
    if bare:
        said = f"off for {', '.join(bare)}: they run with all that this user may"
        yield Finding(name="in use", status="off", said=said, fix="Write `sandbox: auto` for a server.")


def _limits(groups: Mapping[str, Path], *, root: bool) -> Iterator[Finding]:
    short = shortfall(set_inside=inside(Limits(1, 1)) is not None, root=root, grouped="pids" in groups)
    if short:
        fix = "Run Luthier as an ordinary user, with prlimit (util-linux) installed."
        yield Finding(name="limits", status="warning", said=short, fix=fix)
    else:
        yield Finding(name="limits", status="ok", said="memory and processes of a server can be limited")
