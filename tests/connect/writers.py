"""Processes that edit a project file; a module of its own, so that they start fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.connect import YamlServers
from luthier.spec import ServerEntry

if TYPE_CHECKING:
    from pathlib import Path


def add_many(path: Path, number: int) -> None:
    store = YamlServers(path)
    for turn in range(8):
        store.add(ServerEntry(id=f"s{number}-{turn}", command="uvx"))
        store.replace(ServerEntry(id=f"s{number}-{turn}", command="npx"))


def add_forever(path: Path) -> None:
    store = YamlServers(path)
    while True:
        store.add(ServerEntry(id="git", command="uvx"))
        store.remove("git")
