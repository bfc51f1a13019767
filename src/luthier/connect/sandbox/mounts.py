"""What a server sees of the file system: which folder of ours lies where, and whether it may write there.

Of the system: /usr with its links, and the files of /etc that programs need to run at all. Of its own: the
prefix of its interpreter and the folder of its script, read-only. Beyond that, what the entry names, each
path resolved before it is mounted, and shown as such. Everything else is not there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import LuthierError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from luthier.spec import Sandbox

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    *("alternatives", "ca-certificates", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"),
    *("host.conf", "gai.conf", "group", "mime.types", "nsswitch.conf", "passwd", "protocols", "resolv.conf"),
    *("services", "timezone", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust"),
)
_NEVER = ("/", "/proc", "/sys", "/dev", "/run", "/boot")
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg")
"""Of an interpreter's prefix. `share` is left out: under ~/.local it holds what is a person's own."""


class UnfitMountError(LuthierError):
    """A path that cannot be mounted; `key` and `index` say which one of the entry's."""

    def __init__(self, message: str, key: str, index: int) -> None:
        super().__init__(message)
        self.key = key
        self.index = index


class Mount(msgspec.Struct, frozen=True):
    """`source` of ours, all links resolved, is seen at `target`."""

    source: Path
    target: Path
    writable: bool = False

    def __str__(self) -> str:
        what = "write" if self.writable else "read"
        return f"{what} {self.target}{f' (it is {self.source})' if self.source != self.target else ''}"


class Mounts(msgspec.Struct, frozen=True):
    """`links` of the system as (name, target), `binds` in the order in which they are made."""

    links: tuple[tuple[str, str], ...]
    binds: tuple[Mount, ...]
    named: tuple[Mount, ...]  # those that the entry names, among the binds
    hidden: tuple[Path, ...] = ()  # folders in them that are covered


def mounts_of(
    sandbox: Sandbox, root: Path, *, programs: Iterable[Path], script: Path | None, path: str
) -> Mounts:
    """What a server sees. `programs` are the files that are executed, `path` is its search path.

    Raises UnfitMountError for what the entry names and cannot have.
    """
    named = tuple(_named(sandbox, root))
    own: list[Mount] = []
    for program in programs:
        own += _program(program, path)
    if script is not None:
        own += _script(script, root)
    links, system = _system()
    binds = dict.fromkeys((*system, *sorted((*own, *named), key=_depth)))
    state = root / ".luthier"
    hidden = (state,) if state.is_dir() and any(_covers(mount.target, state) for mount in binds) else ()
    return Mounts(links, tuple(binds), named, hidden)


def _depth(mount: Mount) -> tuple[int, str, bool]:
    """What lies deeper comes later, so that nothing is covered; what may be written to comes last."""
    return len(mount.target.parts), str(mount.target), mount.writable


def _covers(outer: Path, inner: Path) -> bool:
    return inner.is_relative_to(outer)


def _named(sandbox: Sandbox, root: Path) -> Iterator[Mount]:
    written = [_place(root, text) for text in sandbox.write]
    for key, texts in (("read", sandbox.read), ("write", sandbox.write)):
        for index, text in enumerate(texts):
            target = _place(root, text)
            try:
                source = target.resolve(strict=True)
            except (OSError, RuntimeError, ValueError) as error:
                raise UnfitMountError("is not there", key, index) from error
            if str(source) in _NEVER or str(target) in _NEVER:
                raise UnfitMountError(f"is {source}, which no server is shown", key, index)
            if source != target and any(target != other and _covers(other, target) for other in written):
                raise UnfitMountError("is a link that this server itself could turn elsewhere", key, index)
            if key == "write" and _covers(source, root.resolve()):
                raise UnfitMountError(
                    "holds the project's own files, so it could change how servers are started", key, index
                )
            yield Mount(source, target, key == "write")


def _place(root: Path, text: str) -> Path:
    """The absolute path that is meant, links untouched."""
    try:
        return Path(os.path.normpath(root.absolute() / Path(text).expanduser()))
    except RuntimeError:  # the home of nobody
        return root / text


def _system() -> tuple[tuple[tuple[str, str], ...], tuple[Mount, ...]]:
    links, binds = [], [Mount(Path("/usr"), Path("/usr"))]
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            links.append((name, str(path.readlink())))
        elif path.is_dir():
            binds.append(Mount(path, path))
    for name in _ETC:
        path = Path("/etc") / name
        if path.exists():
            binds.append(Mount(path.resolve(), path))
    return tuple(links), tuple(binds)


def _program(program: Path, path: str) -> Iterator[Mount]:
    """The file, what it is linked to, the prefixes around them, and the interpreter in its first line."""
    for hop in _hops(program):
        if _covers(Path("/usr"), hop):
            continue
        prefix = hop.parent.parent if hop.parent.name == "bin" else None
        if prefix is None or not _is_prefix(prefix):
            yield Mount(hop.resolve(), hop)
            continue
        for part in _PARTS:
            if (prefix / part).exists():
                yield Mount((prefix / part).resolve(), prefix / part)
    interpreter = interpreter_of(program, path)
    if interpreter is not None and interpreter != program:
        yield from _program(interpreter, path)


def _hops(program: Path) -> Iterator[Path]:
    """The path and every path that its last part is linked to."""
    seen: set[Path] = set()
    while program not in seen:
        seen.add(program)
        yield program
        if not program.is_symlink():
            break
        program = Path(os.path.normpath(program.parent / program.readlink()))
    real = program.resolve()
    if real not in seen:
        yield real


def _is_prefix(prefix: Path) -> bool:
    return (
        (prefix / "pyvenv.cfg").is_file()
        or any((prefix / part).is_dir() for part in ("lib/node_modules", "include/node"))
        or any(prefix.glob("lib/python3*"))
    )


def interpreter_of(program: Path, path: str) -> Path | None:
    """The interpreter that a script names behind #!, looked up if it is named by `env`."""
    try:
        with program.open("rb") as stream:
            line = stream.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = [word for word in os.fsdecode(line[2:]).split() if not word.startswith("-") and "=" not in word]
    if len(words) > 1 and words[0].endswith("/env"):
        found = shutil.which(words[1], path=path)
        return Path(found) if found else None
    return Path(words[0]) if words and words[0].startswith("/") else None


def _script(script: Path, root: Path) -> Iterator[Mount]:
    """The folder of the script; of the project's own folder, and those above it, only the script itself.

    A package that npm installed is seen with all that lies in the same node_modules.
    """
    for place in dict.fromkeys((script, script.resolve())):
        seen = next((folder for folder in reversed(place.parents) if folder.name == "node_modules"), None)
        if seen is None:
            own = _covers(place.parent, root) or _covers(place.parent, root.resolve())
            seen = place if own else place.parent
        yield Mount(seen.resolve(), seen)
