"""`luthier servers add` and `remove`, killed at each step in the project's folder: all or nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from luthier.spec import load_project
from tests.uncounted import uncounted

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = """\
# The servers of the house.
mcpServers:
  # tells the time
  time: {command: uvx, args: [mcp-server-time]}  # local
"""

# Ends the process, as `kill -9` would, right before its n-th dealing with a file of the folder.
KILLED = """
import os, signal, sys

left = int(sys.argv[2])

def watch(event, arguments):
    global left
    if event == "open" or event.startswith("os."):
        if any(isinstance(one, (str, bytes)) and sys.argv[1] in os.fsdecode(one) for one in arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
os.chdir(sys.argv[1])
from luthier.cli import main
sys.argv = ["luthier", *sys.argv[3:]]
main()
"""

WAYS = {
    "add": ("servers", "add", "git", "--command", "uvx", "--arg", "mcp-server-git"),
    "remove": ("servers", "remove", "time"),
}


@pytest.mark.timeout(240)  # some thirty processes
@pytest.mark.parametrize("way", WAYS)
def test_the_file_is_as_before_or_whole_with_the_change(tmp_path: Path, way: str) -> None:
    after, seen, kills = None, set(), 0
    for step in range(1, 200):
        (folder := tmp_path / f"project-{step}").mkdir()
        file = folder / "luthier.yaml"
        file.write_text(BEFORE)
        program = [sys.executable, "-c", KILLED, str(folder), str(step), *WAYS[way]]
        done = subprocess.run(program, env=uncounted(), capture_output=True, timeout=50, check=False)
        seen.add(file.read_text())
        servers = load_project(file).servers
        if done.returncode == 0:
            after = file.read_text()
            assert list(servers) == (["time", "git"] if way == "add" else [])
            break
        assert done.returncode == -9, done.stderr
        kills += 1
        words = [sys.executable, "-m", "luthier", *WAYS[way]]
        again = subprocess.run(words, cwd=folder, capture_output=True, timeout=50, check=False)
        changed = "git" in servers if way == "add" else "time" not in servers
        assert again.returncode == (2 if changed else 0), again.stderr
    assert after is not None
    assert kills > 3
    assert seen <= {BEFORE, after}
