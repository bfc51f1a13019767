"""`run --mock`, `--replay` and `--record`: servers in memory in the place of real ones, and traffic kept.

A mocked tool whose definition was pinned or recorded keeps it, so its arguments are judged by the real
schema. What is kept of mocked servers, their pins above all, stays apart from what is known of the real ones.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.cli.inputs import read_mocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from luthier.spec import Ensemble, Project


class Doubles(msgspec.Struct, frozen=True):
    """What the command was told to put in the place of servers, and where to keep what real ones say."""

    mocks: tuple[str, ...] = ()
    replay: Path | None = None
    record: Path | None = None


class Parts(msgspec.Struct, frozen=True):
    """A project, and what else a Runtime is opened with."""

    project: Any  # a Project, which is loaded only where it is used
    given: dict[str, Any] = {}
    prepare: Any = None  # to be awaited with the Runtime before anything runs


@contextmanager
def doubled(project: Project, ensemble: Ensemble, doubles: Doubles) -> Iterator[Parts]:
    """What to run in place of the project. Raises InputError and SpecError, and MockError for a miss."""
    answers = read_mocks(list(doubles.mocks))
    if doubles.record is not None:
        with _recording(doubles, doubles.record) as guards:
            yield Parts(project, {"guards": guards})
    elif answers or doubles.replay is not None:
        with _mocked(project, ensemble, answers, doubles.replay) as parts:
            yield parts
    else:
        yield Parts(project)


@contextmanager
def _recording(doubles: Doubles, path: Path) -> Iterator[tuple[Any, ...]]:
    from luthier.connect.traffic import TrafficWriter
    from luthier.errors import Fault, InputError
    from luthier.testing.recording import TrafficRecorder

    if doubles.mocks or doubles.replay is not None:
        raise InputError([Fault("--record keeps what real servers say: leave out --mock and --replay")])
    writer = TrafficWriter(path)
    try:
        yield (TrafficRecorder(writer).guard,)
    finally:
        writer.close()


@contextmanager
def _mocked(
    project: Project, ensemble: Ensemble, answers: dict[str, Any], replay: Path | None
) -> Iterator[Parts]:
    from luthier.connect import AsideState
    from luthier.connect.traffic import Traffic, read_traffic
    from luthier.runtime import Library
    from luthier.runtime.sources import state_of
    from luthier.testing import Mocks, named_tools, stage
    from luthier.testing.recording import replayed

    traffic = read_traffic(replay) if replay is not None else Traffic({}, {})
    named = named_tools(Library(project), ensemble)
    _see_known(answers, {*project.servers, *named})
    answers = {**answers, **{key: one for key, one in replayed(traffic).items() if key not in answers}}
    named = named_tools(Library(project), ensemble)
    _see_known(answers, {*project.servers, *named})
    servers = Mocks(answers).servers({*project.servers, *named})
    state = state_of(project, os.environ)
    pinned = {id: _definitions(state.get("pins", id)) for id in servers}
    mocks = Mocks(answers, definitions={**pinned, **traffic.definitions})
    staged = stage(project, mocks, named=named, strict=replay is not None)
    aside = AsideState(state, staged.transports)
    try:
        yield Parts(staged.project, {"transports": staged.transports, "state": aside}, staged.pin)
    finally:
        mocks.check()


def _see_known(answers: dict[str, Any], servers: Collection[str]) -> None:
    """Raises InputError for a mock of no server: what it was meant for would be called."""
    from luthier.errors import Fault, InputError
    from luthier.spec.words import meant

    faults = []
    for key in answers:
        id = key.partition(":")[0]
        if id != "*" and not any(fnmatchcase(server, id) for server in servers):
            faults.append(Fault(f"--mock {key!r}: there is no server {id!r}", suggestion=meant(id, servers)))
    if faults:
        raise InputError(faults)


def _definitions(pins: Any) -> dict[str, dict[str, Any]]:
    from luthier.govern.pins import pins_in

    try:
        return {name: pin.definition for name, pin in pins_in(pins or {}).items()}
    except ValueError:  # pins that cannot be read hold back the real server, not its mock
        return {}
