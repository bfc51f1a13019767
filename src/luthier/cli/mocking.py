"""`run --mock SERVER:TOOL=VALUE`: servers in memory in the place of real ones, through the same gate.

A mocked tool whose definition was pinned keeps it, so its arguments are judged by the real schema. What
is kept of mocked servers, their pins above all, stays apart from what is known of the real ones.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.cli.inputs import read_mocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import Ensemble, Project


class Parts(msgspec.Struct, frozen=True):
    """A project, and what else a Runtime is opened with."""

    project: Any  # a Project, which is loaded only where it is used
    given: dict[str, Any] = {}
    prepare: Any = None  # to be awaited with the Runtime before anything runs


@contextmanager
def mocked(project: Project, ensemble: Ensemble, pairs: list[str]) -> Iterator[Parts]:
    """What to run in place of the project. Raises InputError for what is no mock, MockError for a miss."""
    if not pairs:
        yield Parts(project)
        return
    from luthier.connect import AsideState
    from luthier.runtime import Library
    from luthier.runtime.sources import state_of
    from luthier.testing import Mocks, named_tools, stage

    answers = read_mocks(pairs)
    named = named_tools(Library(project), ensemble)
    servers = Mocks(answers).servers({*project.servers, *named})
    state = state_of(project, os.environ)
    known = {id: _definitions(state.get("pins", id)) for id in servers}
    mocks = Mocks(answers, definitions=known)
    staged = stage(project, mocks, named=named)
    parts = {"transports": staged.transports, "state": AsideState(state, servers)}
    try:
        yield Parts(staged.project, parts, staged.pin)
    finally:
        mocks.check()


def _definitions(pins: Any) -> dict[str, dict[str, Any]]:
    from luthier.govern.pins import pins_in

    try:
        return {name: pin.definition for name, pin in pins_in(pins or {}).items()}
    except ValueError:  # pins that cannot be read hold back the real server, not its mock
        return {}
