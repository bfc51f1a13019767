"""What a check looks at, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from luthier.spec import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Status = Literal["ok", "off", "warning", "broken"]
"""`off`: it is not there, and nothing here needs it. `broken`: something needs it."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at, and what to do where it is not as it should be."""

    name: str
    status: Status
    said: str
    fix: str = ""


class Case(msgspec.Struct, frozen=True):
    """The project and the environment that it is looked at in."""

    project: Project
    environ: dict[str, str]

    @classmethod
    def of(cls, project: Project, environ: Mapping[str, str]) -> Case:
        return cls(project, project.environ(environ))


Check: TypeAlias = "Callable[[Case], Iterator[Finding]]"
