"""Where the audit log, its key and its checkpoints are, as the project says or by default.

By default the key and the checkpoints are in the user's own folder, away from the log: who can write to the
project cannot rewrite its history.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.govern.checkpoints import CheckpointFile
from luthier.govern.keys import keep_key, key_of_text, read_key
from luthier.govern.reading import FileSegments
from luthier.secrets import Secret, expand
from luthier.spec.places import located

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.govern.keys import AuditKey
    from luthier.govern.reading import Segments
    from luthier.spec import Project

STATE_FOLDER = ".luthier"


class AuditPlaces:
    """Of one project, with that environment."""

    def __init__(
        self, project: Project, environ: Mapping[str, str], *, segments: Segments | None = None
    ) -> None:
        """`segments`: those of a log that is not kept in files."""
        settings = project.audit
        own = _own_folder(environ) or project.root / STATE_FOLDER
        self._text = settings.key
        self._place = project.origin.place("audit", "key")
        self._environ = environ
        self.log = project.root / STATE_FOLDER / "audit"
        self.segments = segments or FileSegments(self.log)
        self.key_file = _path(settings.key_file, project.root) or own / "audit.key"
        self.checkpoints = CheckpointFile(
            _path(settings.checkpoints, project.root) or own / "checkpoints" / f"{_name_of(self.log)}.jsonl"
        )

    def key(self) -> AuditKey:
        """The key, made if it is not there yet. Raises AuditError and UnresolvedReferenceError."""
        return self._given() or keep_key(self.key_file)

    def known_key(self) -> AuditKey | None:
        """The key if there is one: for reading, which makes none. Raises as `key` does."""
        return self._given() or read_key(self.key_file)

    def beside(self) -> tuple[Path, ...]:
        """What of it is kept with the log, within reach of whoever may rewrite that."""
        kept = [] if self._text is not None else [self.key_file]
        home = self.log.parent.parent.resolve()
        return tuple(path for path in (*kept, self.checkpoints.path) if path.resolve().is_relative_to(home))

    def _given(self) -> AuditKey | None:
        if self._text is None:
            return None
        return key_of_text(
            Secret(expand(self._text, self._environ, place=self._place)).reveal(), where=self._text
        )


def _own_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's folder for state (XDG Base Directory); None for a user without a home."""
    if state := environ.get("XDG_STATE_HOME"):
        return Path(state) / "luthier"
    home = environ.get("HOME")
    return Path(home) / ".local" / "state" / "luthier" if home else None


def _path(text: str | None, root: Path) -> Path | None:
    return None if text is None else located(root, text)


def _name_of(log: Path) -> str:
    return hashlib.sha256(str(log.resolve()).encode()).hexdigest()[:32]
