"""The entries of real servers, each marked so that whatever is left of them is found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier.events import ServerReady
from tests.faults.bench import LEGACY, MARK, MODERN, Bench

if TYPE_CHECKING:
    from tests.faults.bench import House

PYTHON_SERVERS = ("mcp-server-time", "mcp-server-git", "mcp-server-fetch")
COMMANDS = ("python", "node", *PYTHON_SERVERS)

ERAS = {"pinned-legacy": (LEGACY, LEGACY), "pinned-modern": (MODERN, MODERN), "auto": (None, MODERN)}
"""What the entry pins, and what must be spoken: all of these servers speak both eras."""

NODE_SERVERS = os.environ.get("LUTHIER_NODE_SERVERS", "")


def fields(bench: Bench, command: str, *args: str, **more: Any) -> dict[str, Any]:
    """An entry as a project file would say it."""
    env = {MARK: bench.mark, **more.pop("env", {})}
    entry = {"command": command, "args": list(args), "max_retries": 0, **more, "env": env}
    return {key: value for key, value in entry.items() if value is not None}


def node(bench: Bench, name: str, *args: str, **more: Any) -> dict[str, Any]:
    """An entry for one of the servers that the test script has installed for Node."""
    script = Path(NODE_SERVERS) / "node_modules" / ".bin" / f"mcp-server-{name}"
    return fields(bench, "node", str(script), *args, **more)


def spoken(house: House) -> list[str]:
    """The revision of each session that was opened."""
    return [event.protocol for event in house.watcher.of(ServerReady)]
