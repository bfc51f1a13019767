"""What the tests of the sandbox share: whether there is one here, and servers that try what they are told."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import ConnectionManager, ServerRegistry
from luthier.connect.sandbox import working
from luthier.events import Observers
from luthier.spec import ServerEntry
from tests.connect.kit import Notebook, call, wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[3]
SERVER = Path(__file__).with_name("inmate.py")

# bubblewrap is no part of what Luthier needs: scripts/test installs it where it may.
needs_sandbox = pytest.mark.skipif(not working().program, reason=f"no sandbox here: {working().why}")


def inmate(id: str = "inmate", **fields: Any) -> ServerEntry:
    """A server that runs whatever Python code its tool is given."""
    return ServerEntry(
        id=id, command="python", args=(str(SERVER),), **{"max_retries": 0, "timeout": 30.0, **fields}
    )


class Cell:
    """A manager over servers, and what it was told."""

    def __init__(self, *entries: ServerEntry, root: Path = ROOT, **options: Any) -> None:
        self.notebook = Notebook()
        environ = options.pop("environ", {})
        self.manager = ConnectionManager(
            ServerRegistry(entries, root=root, **options),
            observers=Observers([self.notebook]),
            environ={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root"), **environ},
        )

    async def try_(self, code: str, server: str = "inmate", **arguments: Any) -> str:
        """What that code comes to, run inside: what it printed, or the exception it ended with."""
        reply = await call(self.manager, wanted(server, "try", code=code, **arguments))
        return reply.content if isinstance(reply.content, str) else json.dumps(reply.content)


@asynccontextmanager
async def cell(*entries: ServerEntry, **options: Any) -> AsyncIterator[Cell]:
    made = Cell(*entries, **options)
    try:
        yield made
    finally:
        await made.manager.close_all()
