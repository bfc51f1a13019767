"""Mocks of tools, `{"github:get_pull_request": answer}`, and the servers in memory that they make.

A mocked server is spoken to in the real protocol and through the real gate: access, schemas, labels and audit
are those of production. A server of which one tool is mocked is mocked whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import ConnectError, MockError, NotFoundError, SpecError
from luthier.spec import Project, ServerEntry, ToolsConfig
from luthier.testing.answers import behaviour
from luthier.uri import SERVER_ID
from luthier.wire import MemoryServer, Transport
from luthier.wire.era import LATEST_MODERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from luthier.clock import Clock
    from luthier.runtime import Library, Runtime
    from luthier.runtime.library import EnsembleSource
    from luthier.spec import Ensemble

Named = dict[str, set[str]]
"""Tools by server."""

_HOW = 'A mock is written "server:tool", for example "github:get_pull_request", "github:*" or "*".'


class Mocks:
    """Answers by `server:tool`, both of which may hold `*` and `?`; of several that fit, the first written.

    `definitions` holds what a server is to say of its tools: `{"github": {"get_issue": {"inputSchema": …}}}`.
    `troubles` are the errors of the test itself: calls without a mock, sequences used up, assertions.
    """

    def __init__(
        self,
        tools: Mapping[str, Any] | None = None,
        *,
        definitions: Mapping[str, Mapping[str, dict[str, Any]]] | None = None,
    ) -> None:
        self._answers: dict[str, Any] = {}
        self._definitions = {server: dict(tools) for server, tools in (definitions or {}).items()}
        self.troubles: list[BaseException] = []
        for key, answer in (tools or {}).items():
            self[key] = answer

    def __setitem__(self, key: str, answer: Any) -> None:
        server, colon, tool = key.partition(":")
        if key != "*" and not (server and colon and tool):
            raise MockError(f"{key!r} names no tool to be mocked.", hint=_HOW)
        self._answers[key if colon else "*:*"] = answer

    def __delitem__(self, key: str) -> None:
        del self._answers[key if key != "*" else "*:*"]

    def __contains__(self, key: object) -> bool:
        return key in self._answers or (key == "*" and "*:*" in self._answers)

    def clear(self) -> None:
        """Forget all answers and troubles."""
        self._answers.clear()
        self.troubles.clear()

    def trouble(self, error: BaseException) -> None:
        """Note what the test must hear of."""
        self.troubles.append(error)

    def check(self) -> None:
        """Raise the first trouble there was; they are forgotten then."""
        troubles, self.troubles = self.troubles, []
        if troubles:
            raise troubles[0]

    def servers(self, named: Iterable[str]) -> tuple[str, ...]:
        """The servers that are mocked: those that mocks name, and of those in `named` what patterns fit."""
        patterns = [key.partition(":")[0] for key in self._answers]
        plain = dict.fromkeys(pattern for pattern in patterns if SERVER_ID.fullmatch(pattern))
        fitting = [id for id in named if any(fnmatchcase(id, pattern) for pattern in patterns)]
        return tuple(dict.fromkeys([*plain, *fitting]))

    def server(self, entry: ServerEntry, named: Iterable[str], clock: Clock | None = None) -> MemoryServer:
        """The server of an entry, with the tools that mocks name, that are defined, and those in `named`."""
        defined = self._definitions.get(entry.id, {})
        written = [
            tool for server, _, tool in (key.partition(":") for key in self._answers) if server == entry.id
        ]
        plain = [tool for tool in written if not set("*?[") & set(tool)]
        names = dict.fromkeys([*plain, *defined, *sorted(named)])
        return MemoryServer(
            entry.id,
            {name: behaviour(self._answer(entry.id, name), self.trouble) for name in names},
            era=entry.protocol or LATEST_MODERN,
            definitions=defined,
            clock=clock,
        )

    def _answer(self, server: str, tool: str) -> Any:
        key = f"{server}:{tool}"
        if key in self._answers:
            return self._answers[key]
        for pattern, answer in self._answers.items():
            if fnmatchcase(key, pattern):
                return answer
        return partial(_missed, key)


def _missed(key: str, _: Mapping[str, Any]) -> Any:
    raise MockError(f"Tool {key!r} was called and is not mocked.", hint=f'Add a mock "{key}".')


class Stage(msgspec.Struct, frozen=True):
    """A project with its mocked servers: what a Runtime is opened with."""

    project: Project
    servers: dict[str, MemoryServer]
    transports: dict[str, Callable[[], Transport]]

    async def pin(self, runtime: Runtime) -> None:
        """Take the mocks for what was approved, whatever was pinned before: who wrote them knows them."""
        for server in self.servers:
            await asyncio.to_thread(runtime.state.delete, "pins", server)
            if self.project.environment == "production" and self.project.servers[server].approved:
                await runtime.pins.approve(await runtime.review_tools(server), by="test")


def stage(
    project: Project,
    mocks: Mocks,
    *,
    named: Named,
    strict: bool = False,
    clock: Clock | None = None,
) -> Stage:
    """Put servers in memory in the place of those that are mocked, and add those that nobody configured.

    `named` are the tools that are going to be called, by server. `strict`: no other server can be reached.
    """
    entries = {
        id: project.servers.get(id) or ServerEntry(id=id, name=id) for id in _all(project, mocks, named)
    }
    mocked = mocks.servers(entries)
    servers = {id: mocks.server(entries[id], named.get(id, ()), clock) for id in mocked}
    transports: dict[str, Callable[[], Transport]] = {id: one.transport for id, one in servers.items()}
    if strict:
        closed = (id for id in entries if id not in servers)
        transports |= {id: partial(_refuse, id, mocks) for id in closed}
    known = {id: entry for id, entry in entries.items() if id in project.servers or id in transports}
    return Stage(msgspec.structs.replace(project, servers=known), servers, transports)


def _all(project: Project, mocks: Mocks, named: Named) -> tuple[str, ...]:
    ids = dict.fromkeys([*project.servers, *named, *mocks.servers(())])
    return tuple(id for id in ids if id not in project.broken)


def _refuse(server: str, mocks: Mocks) -> Transport:
    error = MockError(
        f"Server {server!r} is not mocked, and nothing may leave this process.",
        hint=f'Add a mock, for example "{server}:*", or test without strict.',
    )
    mocks.trouble(error)
    raise ConnectError(error.message, server=server, retryable=False, hint=error.hint)


def named_tools(library: Library, *sources: EnsembleSource) -> Named:
    """The tools that the ensembles of a project, and these, name in their steps."""
    named: Named = {}
    for ensemble in _ensembles(library, sources):
        for step in ensemble.steps:
            if isinstance(step.config, ToolsConfig):
                named.setdefault(step.config.server, set()).add(step.config.tool)
    return named


def _ensembles(library: Library, sources: Iterable[EnsembleSource]) -> Iterable[Ensemble]:
    for source in (*library.names, *sources):
        try:
            yield library.get(source)
        except (SpecError, NotFoundError):
            continue  # whoever runs it is told
