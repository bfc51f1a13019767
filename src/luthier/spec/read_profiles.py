"""Reads `launch_profiles`: every rule that can be judged without looking at the machine is judged here."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from luthier.spec.commands import ArgumentFault
from luthier.spec.origin import Origin
from luthier.spec.profile import LONGEST, Hole, LaunchProfile, holes_in, pattern_fault
from luthier.spec.reader import Reader
from luthier.spec.server_parts import read_sandbox
from luthier.spec.variables import name_fault
from luthier.spec.words import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}")


def read_profiles(reader: Reader) -> dict[str, LaunchProfile]:
    """The profiles by name. Faulty ones are among them, as far as they could be read, and told."""
    modules = reader.who("allowed_modules")
    inner = reader.inner("launch_profiles")
    if inner is None:
        return {}
    profiles = {}
    for name, value in inner.data.items():
        path = (*inner.path, name)
        if not NAME.fullmatch(name):
            inner.sink.add(f"{quoted(name)} cannot be the name of a launch profile", path, key=True)
            continue
        one = Reader.of(inner.sink, path, value, f"the launch profile {quoted(name)}")
        if one is not None:
            profiles[name] = _read_profile(one, name, modules)
    return profiles


def _read_profile(reader: Reader, name: str, modules: tuple[str, ...] | None) -> LaunchProfile:
    before = len(reader.sink.faults)
    fields: dict[str, Any] = {
        "executable": reader.text("executable", required=True) or "",
        "args": reader.texts("args"),
        "holes": _read_holes(reader),
        "env": reader.texts("env"),
        "cwd": reader.text("cwd"),
        "sha256": _read_digest(reader, "sha256"),
        "script_sha256": _read_digest(reader, "script_sha256"),
        "sandbox": read_sandbox(reader),
        "modules": modules,
    }
    reader.done({"command": "a profile names its program in full: `executable: /usr/bin/…`"})
    origin = Origin(reader.sink.document, reader.path, reader.places)
    given = {key: value for key, value in fields.items() if value is not None}
    profile = LaunchProfile(name=name, origin=origin, **given)
    if len(reader.sink.faults) == before:
        for message, keys in _judge(profile):
            reader.sink.add(message, origin.path(*keys) if origin.has(*keys) else reader.path)
    return profile


def _read_holes(reader: Reader) -> dict[str, Hole] | None:
    inner = reader.inner("holes")
    if inner is None:
        return None
    holes = {}
    for name, value in inner.data.items():
        one = Reader.of(inner.sink, (*inner.path, name), value, f"the hole {quoted(name)}")
        if one is not None:
            holes[name] = _read_hole(one, name)
    return holes


def _read_hole(reader: Reader, name: str) -> Hole:
    words, pattern = reader.texts("enum"), reader.text("pattern")
    longest = reader.whole("max_length", low=1, high=LONGEST)
    reader.done()
    if (not words) == (pattern is None):
        message = f"the hole {quoted(name)} needs either `enum`, a list of words, or `pattern`"
        reader.sink.add(message, reader.path)
    elif pattern is not None and (why := pattern_fault(pattern)):
        reader.sink.add(f"the pattern of {quoted(name)} {why}", reader.at("pattern"))
    for index, word in enumerate(words or ()):
        if why := Hole(enum=words or ()).fault(word):
            reader.sink.add(f"{quoted(word)} {why}", (*reader.at("enum"), index))
    return Hole(enum=words or (), pattern=pattern, max_length=longest or Hole().max_length)


def _read_digest(reader: Reader, key: str) -> str | None:
    digest = reader.text(key)
    if digest is not None and not DIGEST.fullmatch(digest):
        reader.sink.add(f"{quoted(key)} must be 64 hexadecimal digits in lower case", reader.at(key))
    return digest


def _judge(profile: LaunchProfile) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """What is wrong, and under which keys."""
    for key in ("executable", "cwd"):
        path = getattr(profile, key)
        fits = path is None or (
            path.startswith("/") and posixpath.normpath(path) == path and path.isprintable()
        )
        if not fits:
            yield f"{quoted(key)} must be an absolute path without `..`, not {quoted(path)}", (key,)
    for name in dict.fromkeys(name for text in profile.args for name in holes_in(text)):
        if name not in profile.holes:
            at = next(index for index, text in enumerate(profile.args) if name in holes_in(text))
            yield (
                f"there is no hole {quoted(name)}; there are: {listed(profile.holes) or 'none'}",
                ("args", at),
            )
    used = {name for text in profile.args for name in holes_in(text)}
    for name in profile.holes:
        if name not in used:
            yield f"no argument has the hole {quoted(name)}", ("holes", name)
    for index, name in enumerate(profile.env):
        if why := name_fault(name):
            yield f"{quoted(name)} {why}", ("env", index)
    command = posixpath.basename(profile.executable)
    plan = profile.judged(command)
    if isinstance(plan, ArgumentFault):
        if plan.index >= 0:
            said = f"the argument {quoted(profile.args[plan.index])} of {quoted(command)}"
            yield f"{said} is refused: it {plan.message}", ("args", plan.index)
        else:
            yield f"the program {quoted(command)} {plan.message}", ("executable",)
    elif profile.script_sha256 is not None and plan.script is None:
        yield "`script_sha256` is given, and no script is run", ("script_sha256",)
