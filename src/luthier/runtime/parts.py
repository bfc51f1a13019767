"""What a runtime is made of: its project, from whatever describes one, and what users give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from luthier.errors import Refused
from luthier.outside import FilesTool, KvTool
from luthier.outside.keeping import namespace_of
from luthier.secrets import find_keys
from luthier.spec import Project, find_project, load_project, read_project
from luthier.spec.places import located
from luthier.taint import gathered
from luthier.tools import Refusal
from luthier.tools.custom import CustomTool
from luthier.tools.custom import tool as make_tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock
    from luthier.connect import Servers, StateStore
    from luthier.spec import ServerEntry
    from luthier.taint import Labelled
    from luthier.tools import ToolResult
    from luthier.tools.builtin import LocalTool
    from luthier.wire.auth.tokens import TokenStore

    class Registered(Protocol):
        """A registry of servers, or a store of them."""

        def load(self) -> Servers: ...


Source = str | Path | Mapping[str, Any] | Project | None


def project_of(source: Source, *, root: Path | None) -> Project:
    match source:
        case Project():
            return source
        case None:
            path = find_project(root or Path.cwd())
            return load_project(path) if path is not None else read_project({}, root=root or Path.cwd())
        case str() | Path():
            path = Path(source)
            return load_project(path / "luthier.yaml" if path.is_dir() else path)
        case _:
            return read_project(source, root=root)


def with_servers(project: Project, added: Mapping[str, ServerEntry]) -> Project:
    return msgspec.structs.replace(project, servers={**project.servers, **added})


def with_more(project: Project, servers: Mapping[str, Mapping[str, Any]] | Registered | None) -> Project:
    """The project with more servers: as a mapping of entries, or those of a registry."""
    if servers is None:
        return project
    if isinstance(servers, Mapping):
        return with_servers(project, read_project({"mcpServers": dict(servers)}, root=project.root).servers)
    found = servers.load()
    project = msgspec.structs.replace(project, broken={**project.broken, **found.broken})
    return with_servers(project, found.entries)


def keepers(
    project: Project, state_folder: Path, state: Callable[[], StateStore], clock: Clock
) -> tuple[LocalTool, ...]:
    """The tools that keep values and files; the state is asked for when they are first used."""
    name = namespace_of(project.root, project.unused.get("name"))
    folder = located(project.root, project.files) if project.files else state_folder / "files"
    return KvTool(state, name, clock), FilesTool(folder, state, name)


def token_store(project: Project, folder: Path, environ: Mapping[str, str], clock: Clock) -> TokenStore:
    """Where the tokens of logins are kept."""
    from luthier.wire.auth.token_file import FileTokens

    return FileTokens(folder / "tokens.json", clock, find_keys(environ, "tokens", project=project.root))


def answered(outcome: ToolResult | Refusal) -> ToolResult:
    """The result. Raises Refused for a refusal."""
    if isinstance(outcome, Refusal):
        rule, place = outcome.rule, outcome.place
        raise Refused(outcome.kind, outcome.reason, rule=rule, place=place, hint=outcome.hint)
    return outcome


def custom_tool(function: CustomTool[..., Any] | Callable[..., Any]) -> CustomTool[..., Any]:
    return function if isinstance(function, CustomTool) else make_tool(function)


def labelled(values: Mapping[str, Any]) -> Labelled[Any]:
    """Values that users gave, as one: labelled ones keep their labels, the others are the operator's own.

    The lists and mappings are new ones: what is judged is what is sent, whatever becomes of theirs.
    """
    try:
        return gathered(dict(values))
    except RecursionError:
        raise Refused(
            "arguments",
            "The values are nested too deep, or hold themselves.",
            rule="json",
            place="the values that were given",
            hint="Give values that JSON has.",
        ) from None
