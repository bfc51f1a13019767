"""Records of runs as files: one folder, one file of JSON lines a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from luthier.workflows.record import encode_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from luthier.workflows.record import Entry


class FileRecords:
    """Keeps records as `<folder>/<run>.jsonl`, readable by their owner only. Makes the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: str) -> Path:
        """Where the record of that run is, or would be."""
        return self.folder / f"{run}.jsonl"

    def keep(self, run: str, entries: Sequence[Entry]) -> None:
        """Write the whole record; it appears under its name only when it is complete. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f".{run}.part"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode_all(entries))
        unfinished.replace(self.path(run))
