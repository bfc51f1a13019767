"""The last step before a server is started: its files looked at again, and its sandbox made.

What is hashed is what runs: the files of a launch profile are opened, looked at through what was opened, and
mounted in the sandbox, or executed, by the same descriptors. Two things remain. Without a sandbox a script is
opened once more, by its interpreter, and by name. And whoever owns such a file, root or we, could write into
it while it is run; who can do that needs no launch profile.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.connect.environment import FOLDERS
from luthier.connect.profiled import HOME
from luthier.connect.sandbox import (
    Box,
    UnfitMountError,
    Works,
    cgroup,
    command_line,
    filter_file,
    limits_of,
    mounts_of,
    working,
)
from luthier.connect.sandbox.limits import Limits, inside, remove, shortfall
from luthier.connect.start import refuse, written
from luthier.connect.vouched import UnfitFileError, Vouched, vouch
from luthier.wire import StdioLaunch
from luthier.wire.process import Armed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.connect.registry import ServerRegistry
    from luthier.connect.sandbox import Mounts
    from luthier.connect.start import Draft
    from luthier.spec import ServerEntry

_FIX_PROFILE = "A launch profile runs only files that nobody but root and this user can change."


class Host(msgspec.Struct, frozen=True):
    """What the machine offers: its sandbox, control groups, and whether we are root on it."""

    find: Callable[[], Works] = working
    group: Callable[[Limits], tuple[Path, ...]] = cgroup
    root: bool = False


HOST = Host(root=os.geteuid() == 0)


def isolated(entry: ServerEntry, draft: Draft, registry: ServerRegistry, host: Host = HOST) -> StdioLaunch:
    """How that draft is started here. Raises ConnectError where the sandbox it needs cannot be had."""
    production = registry.environment == "production"
    mode = draft.sandbox.mode or ("required" if production else "off")
    if production and mode != "required":
        refuse(entry, f"in production the sandbox is required, not {written(mode)}", *draft.keys)
    works = None if mode == "off" else host.find()
    warning = ""
    if works is not None and not works.program:
        if mode == "required":
            refuse(entry, f"it must run in a sandbox, and {works.why}", *draft.keys, hint=works.fix)
        warning = f"it runs without a sandbox: {works.why}"
        works = None
    mounts = None if works is None else _mounts(entry, draft, registry)
    for opened in _opened(entry, draft):  # so that what cannot be started is refused before it is tried
        opened.close()
    network = _network(draft, production=production)
    arm = partial(_arm, entry, draft, works, mounts, warning, host=host, network=network)
    return StdioLaunch(
        server=entry.id,
        argv=draft.argv,
        env=draft.env,
        cwd=None if draft.cwd is None else str(draft.cwd),
        max_message_bytes=entry.max_message_bytes,
        arm=arm if works is not None or draft.pinned or warning else None,
        isolation=() if mounts is None else _told(mounts, limits_of(draft.sandbox), network=network),
    )


def _told(mounts: Mounts, limits: Limits, *, network: bool) -> tuple[str, ...]:
    """The sandbox in words, every link resolved."""
    reach = "the network of this machine" if network else "no network"
    bounds = f"{limits.memory // 1024 // 1024} MB, {limits.processes} processes"
    return (f"sandbox: {reach}, {bounds}", *map(str, mounts.named))


def _network(draft: Draft, *, production: bool) -> bool:
    """Whether it gets our network: in production only if that is said."""
    network = draft.sandbox.network
    return not production if network is None else network == "host"


def _mounts(entry: ServerEntry, draft: Draft, registry: ServerRegistry) -> Mounts:
    try:
        return mounts_of(
            draft.sandbox,
            registry.root,
            programs=[Path(draft.argv[0])],
            script=draft.script,
            path=draft.env.get("PATH", os.defpath),
        )
    except UnfitMountError as error:
        text = (draft.sandbox.read if error.key == "read" else draft.sandbox.write)[error.index]
        keys = (*draft.keys, error.key, error.index) if draft.keys == ("sandbox",) else draft.keys
        refuse(entry, f"the {error.key} path {written(text)} {error.message}", *keys)


def _opened(entry: ServerEntry, draft: Draft) -> list[Vouched]:
    opened: list[Vouched] = []
    for pinned in draft.pinned:
        try:
            opened.append(vouch(pinned.path, sha256=pinned.sha256, executable=pinned.executable))
        except UnfitFileError as error:
            for one in opened:
                one.close()
            said = f"{pinned.what} {written(str(pinned.path))} {error.message}"
            refuse(entry, said, "launch", hint=_FIX_PROFILE)
    return opened


def _arm(
    entry: ServerEntry,
    draft: Draft,
    works: Works | None,
    mounts: Mounts | None,
    warning: str,
    *,
    host: Host,
    network: bool,
) -> Armed:
    opened, held = _opened(entry, draft), contextlib.ExitStack()
    for one in opened:
        held.callback(one.close)
    descriptors = tuple(one.descriptor for one in opened)
    if works is None or mounts is None:
        return _bare(draft, descriptors, held.close, warning)
    limits = limits_of(draft.sandbox)
    groups = host.group(limits) if host.root else ()
    short = shortfall(set_inside=inside(limits) is not None, root=host.root, grouped=bool(groups))
    if short and limits.asked:
        held.close()
        refuse(
            entry, f"its limits cannot be kept: {short}", *draft.keys, hint="Run Luthier as an ordinary user."
        )
    given = list(descriptors) if works.by_descriptor else []
    if works.filters:
        given.append(calls := filter_file())
        held.callback(os.close, calls)
    home = draft.env.get("HOME", HOME)
    home = home if home.startswith(("/home/", "/root")) else HOME
    said, unsaid = _variables(draft.env, mounts, home)
    box = Box(
        mounts=mounts,
        limits=limits,
        network=network,
        home=home,
        cwd=str(draft.cwd or home),
        said=said,
        unsaid=unsaid,
        files=tuple((one.descriptor, one.real) for one in opened) if works.by_descriptor else (),
        groups=groups,
        calls=given[-1] if works.filters else None,
    )
    return Armed(
        argv=command_line(works, box, draft.argv),
        cwd="/",
        descriptors=tuple(given),
        umask=draft.umask,
        warning=f"in the sandbox {short}" if short else "",
        started=held.close,
        gone=partial(remove, groups),
    )


def _variables(
    env: Mapping[str, str], mounts: Mounts, home: str
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """What is said otherwise inside, and what is not said there: ours names folders that are not there."""
    there = [Path(home), *(mount.target for mount in mounts.named)]
    gone = [
        name
        for name in FOLDERS
        if name in env and not any(Path(env[name]).is_relative_to(one) for one in there)
    ]
    return (("HOME", home),) if "HOME" in gone else (), tuple(name for name in gone if name != "HOME")


def _bare(draft: Draft, descriptors: tuple[int, ...], started: Callable[[], None], warning: str) -> Armed:
    """Without a sandbox: the program by its descriptor, in a folder of its own if it has no other."""
    folder = tempfile.mkdtemp(prefix="luthier-") if draft.cwd is None else None
    return Armed(
        argv=draft.argv,
        executable=f"/proc/self/fd/{descriptors[0]}" if descriptors else None,
        cwd=folder or str(draft.cwd),
        descriptors=descriptors[:1],
        umask=draft.umask,
        warning=warning,
        started=started,
        gone=partial(_drop, folder),
    )


def _drop(folder: str | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
