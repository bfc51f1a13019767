"""Who may reach which server and which of its tools: the first guard that decides.

Every principal of the chain is checked, the innermost and all above it, at every call. To a model and to a
client a server that they may not use is a server that does not exist; the operator, and an ensemble in the
operator's hands, are told the rule and where it is written.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from luthier.context import OPERATOR
from luthier.errors import NotFoundError, approval_hint
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.connect import ServerRegistry
    from luthier.errors import LuthierError
    from luthier.spec import ServerEntry
    from luthier.uri import ToolUri

_MOST = 10_000  # decisions kept

Principals = tuple[str, ...]
Off: TypeAlias = "Callable[[str, Principals], Denial | None]"


class Denial(msgspec.Struct, frozen=True):
    """Why not: in words, by which rule, written where, and how to allow it. `kind`: of the refusal."""

    reason: str
    rule: str
    place: str
    hint: str
    kind: str = "denied"


def is_told(principals: Principals) -> bool:
    """Whether the innermost caller learns that a thing exists which it may not use."""
    return bool(principals) and (principals[-1] == OPERATOR or principals[-1].startswith("ensemble:"))


def nothing_is_off(server: str, principals: Principals) -> Denial | None:  # noqa: ARG001
    """Where nobody can turn anything off."""
    return None


class Access:
    """The decisions for one registry; the same question is thought about once.

    `off` tells what was turned off while we run, which may change at any time.
    """

    def __init__(self, registry: ServerRegistry, off: Off = nothing_is_off) -> None:
        self._registry = registry
        self._off = off
        self._decided: dict[tuple[str, str, Principals], Denial | None] = {}

    def denial(self, uri: ToolUri, principals: Principals) -> Denial | None:
        """Why these may not call that tool, or None. Raises NotFoundError for an unknown server."""
        if uri.scheme != "mcp":
            return None  # who holds a local tool was given it
        if (off := self._off(uri.server, principals)) and uri.server in self._registry:
            return off
        question = (uri.server, uri.name, principals)
        try:
            return self._decided[question]
        except KeyError:
            pass
        entry = self._registry.find(uri.server)
        if entry is None:
            raise self._missing(uri.server, principals)
        if len(self._decided) >= _MOST:
            self._decided.clear()
        denial = self._server_denial(entry, principals) or _tool_denial(entry, uri.name)
        self._decided[question] = denial
        return denial

    def server_denial(self, server: str, principals: Principals) -> Denial | None:
        """Why these may not use any tool of that server, or None. Raises NotFoundError for an unknown one."""
        entry = self._registry.find(server)
        if entry is None:
            raise self._missing(server, principals)
        return self._off(server, principals) or self._server_denial(entry, principals)

    def servers(self, principals: Principals) -> tuple[str, ...]:
        """The servers that these may use, in the order of the registry."""
        return tuple(
            entry.id
            for entry in self._registry
            if self._off(entry.id, principals) is None and self._server_denial(entry, principals) is None
        )

    def unknown_server(self, server: str, principals: Principals) -> NotFoundError:
        """The error for a server that is not there, with the nearest names that these may see."""
        return NotFoundError("server", server, near=near(server, self.servers(principals)))

    def _missing(self, server: str, principals: Principals) -> LuthierError:
        """The error for a server without a good entry: who may know of it is told what is wrong with it."""
        fault = self._registry.fault(server) if is_told(principals) else None
        return fault or self.unknown_server(server, principals)

    def _server_denial(self, entry: ServerEntry, principals: Principals) -> Denial | None:
        if entry.disabled:
            return Denial(
                f"Server {entry.id!r} is disabled.",
                "disabled",
                entry.origin.place("disabled"),
                f"Remove `disabled: true` from {entry.id!r} to use it.",
            )
        if not principals:
            return Denial(
                "A call needs somebody who makes it.",
                "principals",
                "the context of the call",
                "Name who calls, from the outermost to the innermost.",
            )
        for principal in reversed(principals):
            if entry.allowed_agents is not None and not self._is_listed(principal, entry.allowed_agents):
                return Denial(
                    f"{principal!r} may not use server {entry.id!r}.",
                    "allowed_agents",
                    entry.origin.place("allowed_agents"),
                    f"Add {principal!r} to `allowed_agents` of {entry.id!r} to allow it.",
                )
        return None if entry.approved else _approval_denial(entry)

    def _is_listed(self, principal: str, allowed: tuple[str, ...]) -> bool:
        if principal in allowed:
            return True
        # An empty list means nobody, and that is meant.
        return principal == OPERATOR and bool(allowed) and self._registry.environment != "production"


def _approval_denial(entry: ServerEntry) -> Denial:
    return Denial(
        f"Server {entry.id!r} waits for approval.",
        "approved",
        entry.origin.place("approved"),
        approval_hint(entry.id),
        "approval",
    )


def _tool_denial(entry: ServerEntry, name: str) -> Denial | None:
    tools = entry.tools
    if covers(name, tools.deny):
        rule, hint = "deny", "remove the pattern that names it from `tools.deny`"
    elif tools.allow is not None and not covers(name, tools.allow):
        rule, hint = "allow", "add it to `tools.allow`"
    else:
        return None
    return Denial(
        f"Tool {name!r} of server {entry.id!r} may not be used.",
        f"tools.{rule}",
        entry.origin.place("tools", rule),
        f"To allow it, {hint} of {entry.id!r}.",
    )


def covers(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns stands for that name, or is the very name."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
