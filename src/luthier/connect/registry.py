"""The servers that there are, by id, and what of the project decides how they are reached."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import NotFoundError
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from luthier.errors import SpecError
    from luthier.spec import LaunchProfile, Project, ServerEntry

_ENCODER = msgspec.json.Encoder(order="sorted", enc_hook=lambda _: None)  # an origin is no configuration


class ServerRegistry:
    """Entries by id. Replaced, not edited under readers: `with_entry` and `without` give a new one."""

    def __init__(
        self,
        entries: Iterable[ServerEntry] = (),
        *,
        environment: str = "development",
        allowed_commands: Iterable[str] = ("npx", "node", "python3", "python", "uvx"),
        launch_profiles: Mapping[str, LaunchProfile] | None = None,
        root: Path | None = None,
        broken: Mapping[str, SpecError] | None = None,
    ) -> None:
        self._entries = {entry.id: entry for entry in entries}
        self._broken = dict(broken or {})
        self._prints: dict[str, str] = {}
        self.environment = environment
        self.allowed_commands = tuple(allowed_commands)
        self.launch_profiles = dict(launch_profiles or {})
        self.root = root or Path.cwd()

    @classmethod
    def of(cls, project: Project) -> ServerRegistry:
        """The servers of a project."""
        return cls(
            project.servers.values(),
            environment=project.environment,
            allowed_commands=project.allowed_commands,
            launch_profiles=project.launch_profiles,
            root=project.root,
            broken=project.broken,
        )

    def fault(self, server: str) -> SpecError | None:
        """Why the entry of that id cannot be used; None for one that can be, or is not there."""
        return self._broken.get(server)

    def find(self, server: str) -> ServerEntry | None:
        """The entry of that id, or None."""
        return self._entries.get(server)

    def get(self, server: str) -> ServerEntry:
        """The entry of that id. Raises NotFoundError with near ids, SpecError for a faulty one."""
        entry = self._entries.get(server)
        if entry is None:
            if server in self._broken:
                raise self._broken[server]
            raise NotFoundError("server", server, near=near(server, self._entries))
        return entry

    def fingerprint(self, server: str) -> str:
        """A hash of all that the entry and its launch profile say: with another hash it is another server."""
        if server not in self._prints:
            entry = self.get(server)
            said = _ENCODER.encode(entry)
            if entry.launch is not None:
                said += _ENCODER.encode(self.launch_profiles.get(entry.launch.profile))
            self._prints[server] = hashlib.sha256(said).hexdigest()
        return self._prints[server]

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in the order of the file."""
        return tuple(self._entries)

    def with_entry(self, entry: ServerEntry) -> ServerRegistry:
        """The same registry with this entry added, or put in the place of the one of its id."""
        return self._with({**self._entries, entry.id: entry})

    def without(self, server: str) -> ServerRegistry:
        """The same registry without that entry, which need not be there."""
        return self._with({id: entry for id, entry in self._entries.items() if id != server})

    def _with(self, entries: dict[str, ServerEntry]) -> ServerRegistry:
        return ServerRegistry(
            entries.values(),
            environment=self.environment,
            allowed_commands=self.allowed_commands,
            launch_profiles=self.launch_profiles,
            root=self.root,
            broken=self._broken,
        )

    def __iter__(self) -> Iterator[ServerEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, server: object) -> bool:
        return server in self._entries
