"""The process of the command leaves no dump of its memory, and lets nobody of its user look into it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from luthier.cli import dumps

SEEN = """
import ctypes, json, resource, sys
sys.argv = ["luthier", "--version"]
from luthier.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps([ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE)[0]]))
"""

HOLDER = f"{Path(dumps.__file__).read_text()}\nkeep_to_itself()\nprint(flush=True)\nsys.stdin.read()"

# Root may look at everything, so it is somebody else who tries, with an interpreter that is for all.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
PYTHON = shutil.which("python3", path="/usr/bin") if NOBODY else sys.executable


def test_nothing_of_the_process_is_dumped() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEEN], capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 0]


@pytest.mark.parametrize("code", ["import sys; print(flush=True); sys.stdin.read()", HOLDER])
def test_another_process_of_the_same_user_reads_the_environment_of_any_but_this_one(code: str) -> None:
    assert PYTHON is not None
    with subprocess.Popen(
        [*NOBODY, PYTHON, "-c", code],
        env={"PATH": os.environ["PATH"], "TOKEN": "hush-9a31"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        look = [*NOBODY, "cat", f"/proc/{holder.pid}/environ"]
        seen = subprocess.run(look, capture_output=True, timeout=30, check=False, cwd="/")
        holder.communicate()
    assert (b"hush-9a31" in seen.stdout) == (code != HOLDER), seen.stderr
