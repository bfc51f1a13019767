"""Launch profiles: what an operator settles about starting a server, down to typed holes in its arguments.

A profile is written in the project file only. An entry, wherever it comes from, names one and fills its
holes; it can add no argument, choose no program, and pass on no variable that the profile does not list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from luthier.spec.commands import MODULES, harden
from luthier.spec.origin import NOWHERE, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.spec.commands import ArgumentFault, Plan

SandboxMode = Literal["off", "auto", "required"]

LONGEST = 4096
"""Characters that a value may have at most, whatever its hole allows."""

_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_REPEATED_GROUP = re.compile(r"(?<!\\)(?:\\\\)*\)[*+{]")


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """`mode` and `network` None: as the environment says."""

    mode: SandboxMode | None = None
    network: Literal["none", "host"] | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    memory_mb: int | None = None
    max_processes: int | None = None


class Hole(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand in one hole: one of some words, or what a pattern matches from end to end."""

    enum: tuple[str, ...] = ()
    pattern: str | None = None
    max_length: int = 128

    def fault(self, value: str) -> str:
        """Why that value may not stand there; empty when it may."""
        if value.startswith("-"):
            return "begins with -, so it would be an option"
        if not value.isprintable():
            return "holds characters that cannot be printed"
        if self.enum:
            return "" if value in self.enum else f"is none of {', '.join(self.enum)}"
        if len(value) > self.max_length:
            return f"has more than {self.max_length} characters"
        if re.fullmatch(self.pattern or "", value) is None:
            return f"does not match {self.pattern}"
        return ""


class LaunchProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One way to start a server. `cwd` None: an empty folder made for it. `sha256` is the executable's.

    `modules` are the patterns of the project for what -m may run.
    """

    name: str
    executable: str
    args: tuple[str, ...] = ()
    holes: dict[str, Hole] = {}
    env: tuple[str, ...] = ()  # names that an entry may give values to, or inherit
    cwd: str | None = None
    sha256: str | None = None
    script_sha256: str | None = None
    sandbox: Sandbox = Sandbox()
    modules: tuple[str, ...] = MODULES
    origin: Origin = NOWHERE

    def judged(self, command: str) -> Plan | ArgumentFault:
        """What starting it comes to, if the executable is of that name."""
        holes = [at for at, text in enumerate(self.args) if holes_in(text)]
        return harden(command, self.args, holes, self.modules)

    def fault(self, values: Mapping[str, str]) -> tuple[str, str]:
        """What is wrong with these values: the name of the hole and why; two empty texts if nothing is."""
        for name in values:
            if name not in self.holes:
                return name, "is not a hole of its profile"
        for name, hole in self.holes.items():
            if name not in values:
                return name, "is missing"
            if why := hole.fault(values[name]):
                return name, why
        return "", ""

    def filled(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The arguments with these values, which have been judged."""
        return tuple(_HOLE.sub(lambda found: values[found[1]], text) for text in self.args)


def holes_in(text: str) -> tuple[str, ...]:
    """The names of the holes in an argument."""
    return tuple(_HOLE.findall(text))


def pattern_fault(pattern: str) -> str:
    """Why a hole may not have that pattern; empty when it may. A group that repeats could take for ever."""
    if len(pattern) > 200:  # noqa: PLR2004
        return "is longer than 200 characters"
    if _REPEATED_GROUP.search(pattern):
        return "repeats a group, which can take very long"
    if re.search(r"\\[1-9]|\(\?", pattern):
        return "refers back or has an extended group"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"is not a regular expression: {error.msg}"
    return ""
