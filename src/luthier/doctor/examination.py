"""All checks, in the order in which they are told. One that fails is a finding of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.doctor.audit import audit
from luthier.doctor.finding import Case, Finding
from luthier.doctor.interpreters import interpreters
from luthier.doctor.listeners import listeners
from luthier.doctor.profiles import profiles
from luthier.doctor.sandbox import sandbox
from luthier.doctor.secrets import secrets
from luthier.doctor.servers import servers
from luthier.doctor.store import store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.doctor.finding import Check
    from luthier.spec import Project

CHECKS: dict[str, Check] = {
    "interpreters": interpreters,
    "sandbox": sandbox,
    "profiles": profiles,
    "store": store,
    "audit": audit,
    "secrets": secrets,
    "servers": servers,
    "listeners": listeners,
}


def examine(
    project: Project, environ: Mapping[str, str], checks: Mapping[str, Check] = CHECKS
) -> dict[str, tuple[Finding, ...]]:
    """What each check found, by its subject."""
    case = Case.of(project, environ)
    return {subject: _found(check, case) for subject, check in checks.items()}


def _found(check: Check, case: Case) -> tuple[Finding, ...]:
    try:
        return tuple(check(case))
    except Exception as error:  # noqa: BLE001  (whatever is broken here is what is looked for)
        said = f"looking at it failed: {type(error).__name__}: {error}"
        return (Finding(name="check", status="broken", said=said, fix="Tell the people who make Luthier."),)
