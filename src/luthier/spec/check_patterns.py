"""Warns of rules, budgets and offers that name a server which the project does not have."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from luthier.spec.words import meant, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.errors import Fault
    from luthier.spec.origin import KeyPath
    from luthier.spec.project import Project

_MCP = "mcp://"


def check_patterns(project: Project) -> Iterator[Fault]:
    """A pattern for what is not there fits nothing: a name that is spelt wrong is a rule that never holds."""
    for path, text, pattern in (*_rules(project), *_budgets(project), *_offers(project)):
        known = (*project.servers, *project.broken)
        if not any(id == pattern or fnmatchcase(id, pattern) for id in known):
            message = f"{quoted(text)} fits nothing: there is no server {quoted(pattern)} in the project"
            yield project.origin.fault(message, *path, suggestion=meant(pattern, known), warning=True)


_Named = tuple["KeyPath", str, str]
"""Where it stands, what stands there, and the part of it that is for the server."""


def _rules(project: Project) -> Iterator[_Named]:
    for index, rule in enumerate(project.policies.rules):
        for pattern in rule.tool:
            if server := _server(pattern):
                keys = ("policies", "rules", index)
                yield keys if project.origin.has(*keys) else ("policies", index), pattern, server


def _budgets(project: Project) -> Iterator[_Named]:
    for index, budget in enumerate(project.budgets):
        if budget.server:
            yield ("budgets", index, "server"), budget.server, budget.server
        if server := _server(budget.tool or ""):
            yield ("budgets", index, "tool"), budget.tool or "", server


def _offers(project: Project) -> Iterator[_Named]:
    for index, (name, address) in enumerate(project.serve.tools.items()):
        if server := _server(address):
            keys = ("serve", "tools", name)
            yield keys if project.origin.has(*keys) else ("serve", "tools", index), address, server


def _server(pattern: str) -> str:
    """The part of an address that is for the server; empty where none is named."""
    server, slash, _ = pattern.removeprefix(_MCP).partition("/")
    return server if slash and pattern.startswith(_MCP) else ""
