"""A sandbox in the words that people bring from elsewhere, for `sandbox` of an entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import msgspec


class FilesystemMount(msgspec.Struct, frozen=True):
    """A path that the server sees, to read (`ro`) or to write as well (`rw`)."""

    path: str
    mode: Literal["ro", "rw"] = "ro"

    @classmethod
    def read(cls, written: FilesystemMount | Mapping[str, Any] | str) -> FilesystemMount:
        """`/path`, `/path:rw`, or a mapping of both. Raises ValueError for another mode."""
        if isinstance(written, FilesystemMount):
            return written
        if isinstance(written, str):
            path, colon, mode = written.rpartition(":")
            written = {"path": path, "mode": mode} if colon and mode in ("ro", "rw") else {"path": written}
        return msgspec.convert(dict(written), cls)


class SandboxConfig(msgspec.Struct, frozen=True):
    """`network` is `deny` or `allow`; `filesystem` are mounts in any of their spellings.

    `allow_unsandboxed`: it starts where there is no sandbox, too.
    """

    enabled: bool = True
    network: Literal["deny", "allow"] = "deny"
    filesystem: Sequence[Any] = ()
    allow_unsandboxed: bool = False

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Self:
        """The same from a mapping; mounts may be written as `/path:rw`. Raises ValueError."""
        return msgspec.convert(dict(written), cls)

    def to_entry(self) -> dict[str, Any]:
        """What luthier.yaml would say. Raises ValueError for a mode or a network that there is not."""
        mounts = [FilesystemMount.read(mount) for mount in self.filesystem]
        return {
            "mode": ("auto" if self.allow_unsandboxed else "required") if self.enabled else "off",
            "network": {"deny": "none", "allow": "host"}[self.network],
            "read": [mount.path for mount in mounts if mount.mode == "ro"],
            "write": [mount.path for mount in mounts if mount.mode == "rw"],
        }
