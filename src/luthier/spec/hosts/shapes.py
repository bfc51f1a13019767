"""Whose file it is, told by its keys first and by its name and folder where the keys leave that open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, SpecError
from luthier.spec.origin import KeyPath
from luthier.spec.words import kind, quoted

if TYPE_CHECKING:
    from luthier.spec.document import Document

_GEMINI = frozenset({"httpUrl", "trust", "includeTools", "excludeTools", "authProviderType"})
_HOST_FOLDERS = frozenset({".vscode", ".cursor", ".gemini", ".claude"})
_HINT = (
    "servers stand under `mcpServers`, `servers` or `mcp.servers`; a server.json has `packages` or `remotes`"
)


class Section(msgspec.Struct, frozen=True):
    """A mapping of servers. `inputs`: where its questions stand. `off`: names that the host leaves out."""

    path: KeyPath
    inputs: KeyPath | None = None
    workspace: Path | None = None
    off: frozenset[str] = frozenset()
    on: frozenset[str] | None = None

    def is_off(self, name: str) -> bool:
        return name in self.off or (self.on is not None and name not in self.on)


class Shape(msgspec.Struct, frozen=True):
    host: str
    sections: tuple[Section, ...]
    notes: tuple[Fault, ...] = ()


def shape_of(document: Document, path: Path, project: Path) -> Shape:
    """Where the servers stand. `project` is the folder whose own servers are wanted. Raises SpecError."""
    data = document.data
    if not isinstance(data, dict):
        raise SpecError(
            [document.fault(f"a host's file is a mapping, not {kind(data)}", (), suggestion=_HINT)]
        )
    for at in ((), ("server",)):
        inner = _get(document, at)
        if isinstance(inner, dict) and (
            isinstance(inner.get("packages"), list) or isinstance(inner.get("remotes"), list)
        ):
            return Shape("registry", (Section(at),))
    if isinstance(data.get("servers"), dict):
        notes = _strangers(document, {"servers", "inputs", "$schema"})
        return Shape("vscode", (Section(("servers",), ("inputs",)),), notes)
    if isinstance(_get(document, ("mcp", "servers")), dict):
        return Shape("vscode", (Section(("mcp", "servers"), ("mcp", "inputs")),))
    if "mcpServers" in data or "projects" in data:
        return _of_servers(document, path, project)
    if data and all(isinstance(one, dict) and {"command", "url"} & one.keys() for one in data.values()):
        return Shape("mcpServers", (Section(()),))
    raise SpecError([document.fault("no servers are found here", (), suggestion=_HINT)])


def workspace_of(path: Path, home: Path) -> Path | None:
    """The folder that a host would have open with this file in it; None for a file of the person's own."""
    folder = path.resolve().parent
    if folder.name in _HOST_FOLDERS:
        folder = folder.parent
    elif path.name != ".mcp.json":
        return None
    return None if folder == home.resolve() else folder


def _of_servers(document: Document, path: Path, project: Path) -> Shape:
    servers = document.data.get("mcpServers", {})
    if not isinstance(servers, dict):
        message = f"`mcpServers` must be a mapping, not {kind(servers)}"
        raise SpecError([document.fault(message, ("mcpServers",))])
    host = _host_of(path, servers, document.data)
    off, on = frozenset[str](), None
    if host == "gemini":
        off = frozenset(_list(document, ("mcp", "excluded")) or ())
        allowed = _list(document, ("mcp", "allowed"))
        on = None if allowed is None else frozenset(allowed)
    notes = (
        _strangers(document, {"mcpServers", "inputs", "$schema"})
        if path.name in ("mcp.json", ".mcp.json")
        else ()
    )
    sections = [Section(("mcpServers",), ("inputs",), None, off, on)] if "mcpServers" in document.data else []
    own, others = _of_projects(document, project)
    return Shape(host, (*sections, *own), (*notes, *others))


def _of_projects(document: Document, project: Path) -> tuple[list[Section], list[Fault]]:
    """Servers that Claude Code keeps for single folders: those of the project, and notes on the others."""
    projects = document.data.get("projects")
    sections: list[Section] = []
    notes: list[Fault] = []
    for folder in projects if isinstance(projects, dict) else ():
        at = ("projects", folder, "mcpServers")
        servers = _get(document, at)
        if not isinstance(servers, dict) or not servers:
            continue
        if Path(folder) == project:
            sections.append(Section(at, workspace=project))
        else:
            message = "another folder has servers of its own, which are left alone"
            hint = f"--workspace {folder} reads them"
            notes.append(document.fault(message, at, key=True, suggestion=hint, warning=True))
    return sections, notes


def _host_of(path: Path, servers: dict[str, Any], data: dict[str, Any]) -> str:
    keys = {key for entry in servers.values() if isinstance(entry, dict) for key in entry}
    if path.parent.name == ".gemini" or keys & _GEMINI:
        return "gemini"
    if path.parent.name == ".cursor":
        return "cursor"
    if path.name in (".mcp.json", ".claude.json") or "projects" in data:
        return "claude-code"
    return "claude-desktop" if path.name.startswith("claude_desktop") else "mcpServers"


def _strangers(document: Document, known: set[str]) -> tuple[Fault, ...]:
    return tuple(
        document.fault(f"{quoted(key)} is not taken over", (key,), key=True, warning=True)
        for key in document.data
        if key not in known
    )


def _list(document: Document, path: KeyPath) -> list[str] | None:
    value = _get(document, path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _get(document: Document, path: KeyPath) -> Any:
    return document.get(path) if document.holds(path) else None
