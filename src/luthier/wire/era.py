"""The revisions of the protocol that we speak, and the two eras they fall into."""

from __future__ import annotations

import msgspec

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""Revisions in which every request carries its own version and capabilities, oldest first."""

KNOWN_VERSIONS = HANDSHAKE_VERSIONS + MODERN_VERSIONS

LATEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN = MODERN_VERSIONS[-1]


class Era(msgspec.Struct, frozen=True):
    """One revision, such as `2025-11-25`. Revisions are names out of a list, never compared as text."""

    version: str

    @property
    def modern(self) -> bool:
        """Whether requests stand alone (2026-07-28) instead of following a handshake."""
        return self.version in MODERN_VERSIONS
