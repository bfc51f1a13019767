"""No entry of the corpus starts anything, over any way in; by hand, each that could be tried does."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luthier.connect import ServerRegistry
from luthier.connect.launch import prepare
from luthier.errors import ConnectError
from luthier.spec import Hole, Launch, LaunchProfile, ServerEntry
from tests.connect.arsenal import Vector, arm, by_hand, corpus
from tests.uncounted import uncounted

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
VECTORS = corpus()

# What only a launch finds out: a file that is not there, or what stands behind a reference.
FOUND_OUT_LATE = {
    "python a folder",
    "python a relative folder",
    "an en dash for a dash",
    "a full-width dash",
    "a reference that becomes a flag",
    "a reference that becomes a command",
    "npx in a folder with an .npmrc",
    "a name with an equals sign",  # as an option of the command line it is another name
}


@pytest.mark.timeout(300)  # 1,240 tries, each of which reads and writes whole project files
def test_of_the_corpus_nothing_is_started_over_any_way_in(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.connect.escaping", str(tmp_path)],
        cwd=ROOT,
        env=uncounted(),
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    report = json.loads(done.stdout)
    always = sum(vector.always for vector in VECTORS)
    figure(
        f"G3: {len(VECTORS)} launch escapes, {always} of them refused in development too; "
        f"{report['tries']} tries, {len(report['started'])} starts, {len(report['marked'])} marks"
    )
    assert len(VECTORS) >= 60
    assert (report["started"], report["marked"]) == ([], [])
    late = [which for which in report["taken"] if which.partition(": ")[2] not in FOUND_OUT_LATE]
    assert late == []
    assert not [which for which in report["taken"] if which.startswith("production") or ", call" in which]


def started_by_hand(vector: Vector, folder: Path, cache: Path) -> bool | None:
    """Whether it makes its mark where nobody checks it; None where its command is not installed."""
    mark = folder / "mark"
    arm(folder / "arsenal", mark)
    aimed = vector.aimed(folder / "arsenal", mark)
    argv = by_hand(aimed)
    if argv is None:
        return None
    own = {"HOME": str(folder), "npm_config_cache": str(cache), "npm_config_offline": "true"}
    with subprocess.Popen(
        argv,
        cwd=aimed.cwd or folder,
        env={**os.environ, **own, **aimed.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(aimed.stdin.encode(), timeout=60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return mark.exists()


@pytest.mark.timeout(240)  # 72 interpreters and runners are started, some of which take seconds
def test_by_hand_the_same_entries_do_run_their_code(tmp_path: Path, figure: Callable[[str], None]) -> None:
    tried = [vector for vector in VECTORS if vector.runs]

    def run(item: tuple[int, Vector]) -> bool | None:
        number, vector = item
        (tmp_path / str(number)).mkdir()
        return started_by_hand(vector, tmp_path / str(number), tmp_path / "cache")

    with ThreadPoolExecutor(4) as pool:
        found = dict(zip([vector.name for vector in tried], pool.map(run, enumerate(tried)), strict=True))
    ran = [name for name, marked in found.items() if marked]
    missing = [name for name, marked in found.items() if marked is None]
    figure(f"G3: the control, by hand: {len(ran)} of {len(tried) - len(missing)} run their code")
    assert [name for name, marked in found.items() if marked is False] == []
    assert len(ran) >= 40  # those of Python and the shells, which are everywhere


# Mutants

ALWAYS = [
    vector for vector in VECTORS if vector.always and vector.command in ("python3", "node", "npx", "uvx")
]
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212\uff0d\ufe63"
PATH_ONLY = {"PATH": os.environ["PATH"], "HOME": "/root"}


def mutated(words: list[str], chance: random.Random) -> list[str]:
    """The same words, spelled in another way that somebody may take for the same."""
    words = list(words)
    at = chance.randrange(len(words)) if words else 0
    match chance.randrange(9):
        case 0 if words:
            words[at] = words[at].swapcase()
        case 1 if words:
            words[at] = words[at].replace("-", chance.choice(DASHES), 1)
        case 2:
            words.insert(at, chance.choice(["--", "", " ", "-", "\t", "-u", "--yes", "-X", "-W"]))
        case 3 if len(words) > at + 1:
            words[at : at + 2] = [words[at] + chance.choice(["", "=", " "]) + words[at + 1]]
        case 4 if words:
            words[at] = chance.choice(["\0", "\n", "\u200b", "\ufeff"]) + words[at]
        case 5 if words:
            words[at] += chance.choice(["\0", "\n", " ", "\u00a0"])
        case 6 if words:
            words[at] = chance.choice(["-u", "-I", "-B", "-y", "-q"])[:2] + words[at].lstrip("-")
        case 7 if words:
            words[at] = f"--{words[at].lstrip('-')}"
        case _:
            words.append(chance.choice(["", "--", "x" * 4096]))
    return words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutants")
    arm(folder / "arsenal", folder / "mark")
    return folder


BATCH, BATCHES = 50, 200


@pytest.mark.timeout(240)  # ten thousand mutants
@given(seed=st.integers(0, 2**64))
@settings(max_examples=BATCHES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ten_thousand_mutants_of_the_corpus_make_no_mark(folder: Path, seed: int) -> None:
    """What is accepted after all is started by hand, without any protection: it must be harmless."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    registry = ServerRegistry(root=folder)
    for _ in range(BATCH):
        vector = chance.choice(ALWAYS).aimed(folder / "arsenal", folder / "mark")
        words = vector.args
        for _ in range(chance.randrange(1, 4)):
            words = mutated(words, chance)
        entry = ServerEntry(
            id="evil", command=vector.command, args=tuple(words), env=vector.env, cwd=vector.cwd
        )
        try:
            launch = prepare(entry, registry, PATH_ONLY)
        except ConnectError:
            continue
        assert starts_harmlessly(launch.argv, launch.env, vector, folder), words


def starts_harmlessly(argv: tuple[str, ...], env: dict[str, str], vector: Vector, folder: Path) -> bool:
    """What an accepted mutant names is a script, a module or a package that marks nothing."""
    if Path(argv[0]).name in ("npx", "uvx"):
        return True  # a bare name: where it comes from is npm's and PyPI's to say, and none is fetched here
    subprocess.run(
        argv,
        env=env,
        cwd=vector.cwd or folder,
        input=vector.stdin.encode(),
        capture_output=True,
        timeout=30,
        check=False,
    )
    marked = (folder / "mark").exists()
    (folder / "mark").unlink(missing_ok=True)
    return not marked


@given(
    value=st.text(max_size=200)
    | st.sampled_from(["-c", "--eval=x", "x\0y", "x\n", "\u2013c", "x" * 2_000_000])
)
@settings(max_examples=500, deadline=None)
def test_whatever_stands_in_a_hole_is_one_plain_argument(value: str) -> None:
    hole = Hole(pattern="[^/]*", max_length=100)
    profile = LaunchProfile(
        name="p", executable="/usr/bin/env-free", args=("run", "{value}"), holes={"value": hole}
    )
    if profile.fault({"value": value}) == ("", ""):
        assert profile.filled({"value": value}) == ("run", value)
        assert not value.startswith("-")
        assert value.isprintable()
        assert len(value) <= 100


def test_two_megabytes_are_refused_like_anything_else(tmp_path: Path) -> None:
    entry = ServerEntry(id="evil", command="python", args=("-c", "x" * 2_000_000))
    with pytest.raises(ConnectError) as caught:
        prepare(entry, ServerRegistry(root=tmp_path), PATH_ONLY)
    assert len(str(caught.value)) < 1000
    launch = Launch(profile="p", values={"value": "x" * 2_000_000})
    profile = LaunchProfile(
        name="p",
        executable=sys.executable,
        args=("-I", "-m", "x", "{value}"),
        holes={"value": Hole(pattern="x*")},
    )
    registry = ServerRegistry(root=tmp_path, launch_profiles={"p": profile})
    with pytest.raises(ConnectError, match="has more than 128 characters"):
        prepare(ServerEntry(id="evil", launch=launch), registry, PATH_ONLY)
