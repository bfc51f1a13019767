"""Nth-fault sweep: a process that drives a durable run is killed, or what it stands on fails, at any point.

Each of five reference ensembles in each way. `scripts/sweep` tries every point, the tests a spread few.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.runtime.killing import KILLED, dying, gone_on, made, sound
from tests.workflows.faulty import ALL
from tests.workflows.house import read
from tests.workflows.references import NESTED, REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = os.environ.get("LUTHIER_SWEEP") == "all"


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How it goes wrong at a point: by an option of the dying process, or by what the server is told.

    `begin`: the first point. `stride`: between two points of a sample. `at`: which reference a sample takes;
    None: all.
    """

    option: str = ""
    act: str = ""
    begin: int = 1
    stride: int = 3
    at: int | None = None

    def strikes(self, project: Path, ensemble: str, point: int) -> bool:
        """Whether there was such a point."""
        if not self.act:
            return dying(project, ensemble, point, *filter(None, [self.option])) != 0
        told = project / f"acts.{self.act}"
        told.write_text(str(point))
        ended = dying(project, ensemble, ALL)
        assert (ended == KILLED) == (self.act == "kill" and not told.exists())
        return not told.exists()


WAYS = {
    "killed behind an entry": Way(begin=0, stride=7),
    "killed in an act": Way(act="kill"),
    "store fails for good behind an entry": Way(option="--error", begin=0, stride=9, at=0),
    "store fails once": Way(option="--once", stride=5, at=1),
    "store fails once, having done it": Way(option="--late", stride=5, at=2),
    "server ends in an act": Way(act="lose", at=3),
    "server ends before an act": Way(act="refuse", at=4),
}


def points() -> list[Any]:
    return [
        pytest.param(
            way, *one, way.begin if WHOLE else 1 + (2 * number + 1) % way.stride, id=f"{how}, {name}"
        )
        for how, way in WAYS.items()
        for number, (name, one) in enumerate(REFERENCES.items())
        if WHOLE or way.at in (None, number)
    ]


@pytest.mark.parametrize(("way", "text", "output", "first"), points())
async def test_whatever_fails_a_run_is_gone_on_with_and_does_nothing_twice(
    way: Way, text: str, output: Any, first: int, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    ends: list[str] = []
    name = read(text).name
    for point in count(first, 1 if WHOLE else way.stride):
        project = made(tmp_path / str(point), text)
        struck = way.strikes(project, name, point)
        end = sound(project, await gone_on(project), output)
        if not struck:
            assert end == "ok"
            break
        ends.append(end)
    how = next(how for how, one in WAYS.items() if one is way)
    found = ", ".join(f"{times} {end}" for end, times in sorted(Counter(ends).items()))
    assert ends
    figure(f"sweep: {how}: {name}: {len(ends)} points: {found}")


@pytest.mark.parametrize("last", [6, 13, 24])
async def test_killed_with_its_record_in_postgresql(tmp_path: Path, last: int, postgres_url: str) -> None:
    project = made(tmp_path / "project", NESTED, store=postgres_url)
    assert dying(project, "nested", last) == KILLED
    output = REFERENCES["nested with foreach"][1]
    assert sound(project, await gone_on(project), output) in ("ok", "unknown")
