"""Runs mutmut over groups of files, each in a temporary copy, and prints what no test killed.

python scripts/mutation.py [GROUP...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
COPIED = ("src", "tests", "pyproject.toml", "ARCHITECTURE.md")

LEFT_OUT = (
    # It starts Python anew, where no mutant is switched on and the package is not installed.
    "tests/spec/test_check.py::test_without_paths_the_working_directory_is_checked",
    # It takes seconds, and what it would kill is killed by the tables.
    "tests/spec/test_commands.py::test_what_is_accepted_has_a_script_a_module_or_a_package_before_anything_dangerous",
)


@dataclass(frozen=True)
class Group:
    """Files whose mutants are made, and the tests that must notice: only quick ones that start little."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "labels": Group(
        ("taint/*", "govern/labels.py", "govern/endorsement.py"),
        (
            "tests/taint",
            "tests/govern/test_labels.py",
            "tests/govern/test_matrix.py",
            "tests/govern/test_endorsement.py",
        ),
    ),
    "policies": Group(
        ("govern/policy.py", "govern/access.py", "govern/guard.py", "spec/policy.py"),
        (
            "tests/govern/test_policy.py",
            "tests/govern/test_access.py",
            "tests/govern/test_matrix.py",
            "tests/govern/test_fail_closed.py",
            "tests/spec/test_cases.py",
            "tests/spec/test_project.py",
        ),
    ),
    "launch": Group(
        (
            "spec/commands.py",
            "spec/variables.py",
            "spec/profile.py",
            "spec/check_launch.py",
            "connect/launch.py",
            "connect/profiled.py",
        ),
        (
            "tests/spec/test_commands.py",
            "tests/spec/test_variables.py",
            "tests/spec/test_check.py",
            "tests/spec/test_profile.py",
            "tests/connect/test_launch.py",
            "tests/connect/test_isolation.py",
            "tests/connect/test_references.py",
        ),
    ),
    "urls": Group(
        ("web/*", "spec/urls.py"),
        ("tests/web", "tests/spec/test_check.py", "tests/connect/test_targets.py"),
    ),
    "pins": Group(
        ("govern/pins.py", "govern/pin_book.py", "govern/canonical.py"),
        (
            "tests/govern/test_pins.py",
            "tests/govern/test_pin_book.py",
            "tests/govern/test_canonical.py",
        ),
    ),
}


# What became of a mutant, by mutmut's exit codes; any other ended in a way that is no verdict.
_ENDS: dict[int | None, str] = {
    0: "survived",
    1: "killed",
    3: "killed",
    5: "no test",
    33: "no test",
    36: "timeout",
}
_ENDS |= dict.fromkeys((-24, 24, 152, 255), "timeout") | {None: "not run"}
_SHOW = """
import json, sys
from mutmut.mutation.diff_apply import get_diff_for_mutant
print(json.dumps({name: get_diff_for_mutant(name) for name in json.load(sys.stdin)}))
"""
_NAME = re.compile(r"(?P<module>.+)\.x(?:_|ǁ(?P<owner>.+)ǁ)(?P<function>.+)__mutmut_(?P<number>\d+)")


@dataclass
class Tally:
    """The mutants of a group by what became of them: end → names."""

    mutants: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, code: int | None) -> None:
        self.mutants.setdefault(_ENDS.get(code, "no verdict"), []).append(name)

    def count(self, *ends: str) -> int:
        return sum(len(self.mutants.get(end, ())) for end in ends)

    @property
    def survivors(self) -> list[tuple[str, str]]:
        """Name and end of each that was run, or should have been by some test, and was not killed."""
        ends = ("survived", "no test", "no verdict")
        return sorted((name, end) for end in ends for name in self.mutants.get(end, ()))

    @property
    def percent(self) -> float:
        """Of those that were run; one that ran out of time was noticed."""
        killed = self.count("killed", "timeout")
        run = killed + len(self.survivors)
        return 100.0 * killed / run if run else 0.0

    def line(self, name: str, seconds: float) -> str:
        total = sum(map(len, self.mutants.values()))
        return (
            f"{name}: {total} mutants, {self.count('killed')} killed, {self.count('timeout')} timed out, "
            f"{len(self.survivors)} survived, {self.count('not run')} not run: {self.percent:.1f} % "
            f"({seconds:.0f} s)"
        )


def readable(name: str) -> str:
    """`luthier.taint.label.xǁLabelǁjoin__mutmut_1` is luthier.taint.label: Label.join 1."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name
    owner = f"{match['owner']}." if match["owner"] else ""
    return f"{match['module']}: {owner}{match['function']} {match['number']}"


def settings(group: Group) -> str:
    """The section for mutmut. JSON's lists of strings are TOML's too."""
    lists = {
        "source_paths": ["src"],
        "only_mutate": [f"src/luthier/{file}" for file in group.files],
        "also_copy": list(COPIED),
        "pytest_add_cli_args": [
            *("-p", "no:cacheprovider", "--hypothesis-profile=mutants"),
            *(f"--deselect={test}" for test in LEFT_OUT),
        ],
        "pytest_add_cli_args_test_selection": list(group.tests),
    }
    return "\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lists.items())


def copy(folder: Path, group: Group) -> None:
    for part in COPIED:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(settings(group))


def mutate(folder: Path, seconds: float) -> str:
    """Let mutmut run for so long; what it said is returned if it failed. Its progress goes to a file."""
    log = folder / "mutmut.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["mutmut", "run"], cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = 0  # what was found until then is told
            process.send_signal(signal.SIGINT)  # it ends its workers, and no result is written by half
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n")[-4000:] if code else ""


def tally(folder: Path) -> Tally:
    found = Tally()
    for file in sorted(folder.glob("mutants/src/**/*.meta")):
        for name, code in json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"].items():
            found.add(name, code)
    return found


def differences(folder: Path, names: list[str]) -> dict[str, list[str]]:
    """The lines that each mutant takes away and puts in. `mutmut show` would start anew for each."""
    shown = subprocess.run(
        ["python", "-c", _SHOW],
        cwd=folder,
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(shown.stdout)
    return {
        name: [line for line in text.splitlines() if re.match(r"[-+](?![-+]{2} )", line)]
        for name, text in found.items()
    }


def run(name: str, seconds: float) -> bool:
    """Whether the group could be run."""
    group = GROUPS[name]
    with tempfile.TemporaryDirectory(prefix="luthier-mutants-") as made:
        folder = Path(made)
        copy(folder, group)
        start = time.monotonic()
        trouble = mutate(folder, seconds)
        found = tally(folder)
        print(found.line(name, time.monotonic() - start))
        shown = differences(folder, [mutant for mutant, _ in found.survivors])
        for mutant, end in found.survivors:
            print(f"  {readable(mutant)}" + (f" ({end})" if end != "survived" else ""))
            print(*(f"    {line}" for line in shown[mutant]), sep="\n")
        if trouble:
            print(f"mutmut failed. The end of what it said:\n{trouble}")
    sys.stdout.flush()
    return not trouble


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description="Mutation tests, group by group.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {', '.join(GROUPS)}")
    names = parser.parse_args().groups or list(GROUPS)
    if unknown := [name for name in names if name not in GROUPS]:
        parser.error(f"no such group: {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    seconds = 60 * float(os.environ.get("LUTHIER_MUTANTS_MINUTES", "60"))
    ran = [run(name, seconds) for name in names]
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
