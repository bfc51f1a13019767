"""What was looked at is what runs, or nothing: a file exchanged after the last look is not started."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

import pytest

from luthier.clock import SystemClock
from luthier.connect import ServerRegistry
from luthier.connect.launch import prepare
from luthier.connect.sandbox import working
from luthier.errors import ConnectError
from luthier.spec import Launch, LaunchProfile, Sandbox, ServerEntry
from luthier.wire.process import Armed, ServerProcess
from tests.connect.sandbox.cell import needs_sandbox

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_sandbox

GOOD, EVIL = "print('good', flush=True)\n", "print('evil', flush=True)\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app").chmod(0o755)
    script = tmp_path / "app" / "server.py"
    script.write_text(GOOD)
    script.chmod(0o644)
    evil = tmp_path / "app" / "evil.py"
    evil.write_text(EVIL)
    evil.chmod(0o644)
    return script


def swap(script: Path, *, link: bool) -> None:
    other = script.with_name("other")
    if link:
        other.symlink_to("evil.py")
    else:
        other.write_text(EVIL)
    os.replace(other, script)  # noqa: PTH105  (as an attacker would)


def launched(script: Path, mode: str) -> Armed:
    profile = LaunchProfile(
        name="app",
        executable=sys.executable,
        args=("-I", str(script)),
        script_sha256=hashlib.sha256(GOOD.encode()).hexdigest(),
        sandbox=Sandbox(mode=mode),  # type: ignore[arg-type]
    )
    entry = ServerEntry(id="app", launch=Launch(profile="app"))
    launch = prepare(entry, ServerRegistry(root=script.parent, launch_profiles={"app": profile}), {})
    assert launch.arm is not None
    return launch.arm()


async def said(armed: Armed) -> str:
    process = ServerProcess(
        armed, {"PATH": os.defpath}, clock=SystemClock(), on_exit=lambda _: None, on_gone=armed.gone
    )
    armed.started()
    os.close(process.stdin)
    with os.fdopen(process.stdout) as out, os.fdopen(process.stderr) as errors:
        text = out.read() + errors.read()
    await process.end()
    return text.strip()


@pytest.mark.skipif(not working().by_descriptor, reason="this bubblewrap cannot mount what is open already")
@pytest.mark.parametrize("link", [False, True])
async def test_what_is_exchanged_after_the_last_look_is_not_what_runs(script: Path, link: bool) -> None:  # noqa: FBT001
    armed = launched(script, "required")
    swap(script, link=link)
    text = await said(armed)  # bubblewrap compares what it has mounted with what is open
    assert "evil" not in text
    assert text == "good" or text.startswith("bwrap: ")


async def test_what_is_not_exchanged_runs(script: Path) -> None:
    assert await said(launched(script, "required")) == "good"


@pytest.mark.parametrize("mode", ["required", "off"])
def test_what_is_exchanged_before_it_is_refused(script: Path, mode: str) -> None:
    launched(script, mode).started()
    swap(script, link=True)
    with pytest.raises(ConnectError, match="SHA-256 differs"):
        launched(script, mode)
