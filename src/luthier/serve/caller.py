"""Who calls, and what is said to who may not."""

from __future__ import annotations

import msgspec


class Proof(msgspec.Struct, frozen=True):
    """A signature by its hash, and until when its time lets it in, in Unix seconds."""

    key: str
    until: float


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A client whose claim to be one holds; every call of it is made as `client:ID`.

    `proof`: what its request shows, where that is good once.
    """

    id: str
    roles: frozenset[str] = frozenset({"run"})
    proof: Proof | None = None

    @property
    def principal(self) -> str:
        return f"client:{self.id}"

    def may(self, role: str) -> bool:
        return role in self.roles or "admin" in self.roles


class Refusal(msgspec.Struct, frozen=True):
    """A request that goes no further: status, what its caller is told, and why, for the log.

    `role`: the one that it would take, where only that is missing.
    """

    status: int
    message: str
    why: str
    role: str = ""
