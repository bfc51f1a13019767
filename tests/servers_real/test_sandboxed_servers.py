"""Real servers in the sandbox: of Python and of Node, as development and as production start them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from luthier.connect import ConnectionManager, ServerRegistry
from luthier.spec import Hole, Launch, LaunchProfile, Sandbox, ServerEntry
from tests.connect.kit import call, wanted
from tests.connect.sandbox.cell import needs_sandbox
from tests.servers_real.street import NODE_SERVERS

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = needs_sandbox

BIN = Path(sys.executable).parent
NODE = os.path.realpath(shutil.which("node") or "node")


def managed(
    entry: ServerEntry, root: Path, profiles: Mapping[str, LaunchProfile] | None = None
) -> ConnectionManager:
    environment = "development" if profiles is None else "production"
    registry = ServerRegistry([entry], root=root, environment=environment, launch_profiles=profiles)
    return ConnectionManager(registry, environ={"PATH": os.environ["PATH"], "HOME": str(Path.home())})


@pytest.mark.parametrize(
    ("executable", "args"),
    [
        (BIN / "python", ("-I", "-m", "mcp_server_time", "--local-timezone", "{zone}")),
        (BIN / "mcp-server-time", ("--local-timezone", "{zone}")),
    ],
    ids=["module", "program"],
)
async def test_a_server_of_python_serves_in_production(
    executable: Path, args: tuple[str, ...], tmp_path: Path
) -> None:
    hole = Hole(pattern="[A-Za-z]+/[A-Za-z]+")
    profile = LaunchProfile(name="time", executable=str(executable), args=args, holes={"zone": hole})
    entry = ServerEntry(id="time", launch=Launch(profile="time", values={"zone": "Asia/Tokyo"}))
    manager = managed(entry, tmp_path, {"time": profile})
    try:
        reply = await call(manager, wanted("time", "get_current_time", timezone="Asia/Tokyo"))
        assert "+09:00" in str(reply.content)
    finally:
        await manager.close_all()


# Node is no part of what Luthier needs: scripts/test installs these servers where it finds Node and npm.
@pytest.mark.skipif(not NODE_SERVERS, reason="LUTHIER_NODE_SERVERS is not set: no Node here")
@pytest.mark.parametrize("production", [False, True])
async def test_a_server_of_node_reads_and_writes_what_it_is_shown_and_nothing_else(
    tmp_path: Path,
    production: bool,  # noqa: FBT001
) -> None:
    for name in ("shown", "hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note").write_text(name)
    script = Path(NODE_SERVERS) / "node_modules" / ".bin" / "mcp-server-filesystem"
    shown, box = str(tmp_path / "shown"), Sandbox(mode="required", write=("shown",), network="none")
    if production:
        args = (str(script), shown)
        profiles = {"fs": LaunchProfile(name="fs", executable=NODE, args=args, sandbox=box)}
        entry = ServerEntry(id="fs", launch=Launch(profile="fs"))
    else:
        profiles = None
        entry = ServerEntry(id="fs", command="node", args=(str(script), shown), sandbox=box)
    manager = managed(entry, tmp_path, profiles)
    try:
        read = await call(manager, wanted("fs", "read_text_file", path=f"{shown}/note"))
        assert "shown" in str(read.content)
        await call(manager, wanted("fs", "write_file", path=f"{shown}/new", content="x"))
        assert (tmp_path / "shown" / "new").read_text() == "x"
        other = await call(manager, wanted("fs", "read_text_file", path=str(tmp_path / "hidden" / "note")))
        assert other.is_error
    finally:
        await manager.close_all()
