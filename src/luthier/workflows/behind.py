"""What stands behind a step besides its own words: its script, and the ensemble that it runs inside.

A result that is kept goes by it too, so that what was changed is run again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from luthier.errors import LuthierError
from luthier.spec import CodeConfig, EnsembleConfig, find_script
from luthier.workflows.plan import plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec import Step
    from luthier.workflows.services import Services

_DEEPEST = 16  # ensembles inside each other, as many as may run so


def behind(steps: Iterable[Step], services: Services, depth: int = 0) -> list[str]:
    """Digests of the scripts and ensembles behind these steps. What is not there fails when it is run."""
    found: list[str] = []
    for step in steps:
        match step.config:
            case CodeConfig(script=script):
                with suppress(OSError, ValueError):
                    path = find_script(services.project.root, script)
                    found.append(hashlib.sha256(path.read_bytes()).hexdigest())
            case EnsembleConfig(ensemble=name) if depth < _DEEPEST:
                with suppress(LuthierError, KeyError):
                    inner = services.ensembles(name)
                    found += [plan(inner).digest(), *behind(inner.steps, services, depth + 1)]
    return found
