"""Processes that write to a store; a module of its own, so that they start fast."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from luthier.spec import ServerEntry
from luthier.store import Database, SqlServers, SqlState

if TYPE_CHECKING:
    from pathlib import Path


def count(url: str, root: Path, number: int) -> None:
    with closing(Database(url, root)) as database:
        state, servers = SqlState(database), SqlServers(database)
        for turn in range(8):
            servers.add(ServerEntry(id=f"s{number}-{turn}", command="uvx"))
            while True:
                there = state.get("counts", "all")
                if state.swap("counts", "all", there, (there or 0) + 1):
                    break


def write_forever(url: str, root: Path) -> None:
    state = SqlState(Database(url, root))
    number = 0
    while True:
        number += 1
        state.put("counts", "big", ["x" * 100_000, number])
