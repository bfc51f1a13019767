"""The one gate: the only way to a tool, for agents, workflows, processes, people and whoever is served.

What it does to a call is the list in `__init__`, from the outside to the inside, and nothing else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import SystemClock
from luthier.connect.schemas import Schemas
from luthier.connect.state import MemoryState
from luthier.errors import LuthierError, NotFoundError, Refused, WireError, kind_of
from luthier.events import CallEnded, CallStarted, Observers
from luthier.govern.access import Access, Denial, is_told, nothing_is_off
from luthier.govern.arguments import Arguments
from luthier.govern.endorsement import endorsed, misfit, record_of, source_of
from luthier.govern.guard import GateCall, Guard, Ledger, Next, Up, announced, fold
from luthier.govern.headers import headers_guard
from luthier.govern.labels import known_label, labelled, unknown
from luthier.govern.pin_book import PinBook
from luthier.govern.pins import Judgement, held_denial, is_equal
from luthier.govern.policy import Policy, answered
from luthier.govern.recorder import AuditRecorder
from luthier.spec import Policies
from luthier.taint import TRUSTED, Label, Source
from luthier.text import near
from luthier.tools import Manifest, Refusal, Tool, ToolCall, ToolResult
from luthier.tools.builtin import LocalTools
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

    from luthier.clock import Clock
    from luthier.connect import ConnectionManager, ServerRegistry
    from luthier.context import CallContext
    from luthier.govern.audit import AuditLog
    from luthier.govern.pins import Review
    from luthier.govern.switch import KillSwitch
    from luthier.taint import Labelled
    from luthier.tools.closed import ClosedType


LONG = 1.0
"""Seconds after which a tool that was looked up is looked up again, before the call is carried."""


class Gateway:
    """`guards` come after access and arguments and before the intent is written: policies and the like.

    `pins` None: kept in memory, as the registry's environment says.
    """

    def __init__(  # noqa: PLR0913  (its parts)
        self,
        *,
        manager: ConnectionManager,
        registry: ServerRegistry,
        audit: AuditLog,
        record: Collection[str] = (),
        local: LocalTools | None = None,
        policy: Policy | None = None,
        switch: KillSwitch | None = None,
        guards: Iterable[Guard] = (),
        pins: PinBook | None = None,
        observers: Observers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._manager = manager
        self._registry = registry
        self._local = local or LocalTools()
        self._observers = observers or Observers()
        self._clock = clock or SystemClock()
        self._switch = switch
        self._off = switch.denial if switch is not None else nothing_is_off
        self._access = Access(registry, self._off)
        self._policy = policy or Policy(Policies(), registry, clock=self._clock)
        self._recorder = AuditRecorder(audit, self._clock, keep=record)
        self._pins = pins or PinBook(
            MemoryState(),
            clock=self._clock,
            observers=self._observers,
            production=registry.environment == "production",
            label_of=manager.label_of,
        )
        self._guarded = fold(
            (
                self._told,
                self._recorder.verdict,
                labelled,
                *((switch.guard,) if switch is not None else ()),
                self._admitted,
                headers_guard(self._takes_headers),
                self._resolved,
                self._shown,
                Arguments(Schemas()).guard,
                self._policy.guard,
                *guards,
                answered,
                self._unchanged,
                announced,
                self._recorder.carried,
            ),
            self._carried,
        )

    def use(self, registry: ServerRegistry) -> None:
        """Take another registry; calls that have begun end under the old one."""
        self._registry = registry
        self._access = Access(registry, self._off)
        self._policy.use(registry)

    async def call(self, call: ToolCall) -> Up:
        """Carry one call, or say no to it.

        Raises NotFoundError for what is not there, or must look so to the caller; WireError when the way to
        the server or back fails; AuditError when the call cannot be recorded, and then it was not made, or,
        as ResultWithheldError, its result is withheld.
        """
        label = known_label(call)
        if label is None:
            return await self._guarded(unknown(call))
        return await self._guarded(GateCall(self._timed(call), label, Ledger()))

    async def tool(self, uri: ToolUri, context: CallContext, *, list_age: float | None = None) -> Tool:
        """One tool that the caller may use. `list_age`: as that of a call.

        Raises NotFoundError with the nearest names that the caller may see, Refused where the caller may
        know that the tool is there, and WireError when its server cannot be reached.
        """
        await self._looked(uri, context)
        found = await self._allowed(uri, context, list_age)
        if isinstance(found, Tool):
            return found
        await self._recorder.lookup_refused(uri, context, found.rule, found.place, found.kind)
        if is_told(context.principals):
            raise _refused(found)
        raise await self._absent(uri, context)

    async def tools(self, context: CallContext, server: str | None = None) -> tuple[Tool, ...]:
        """The tools that the caller may use: of one server, or all there are, local ones first.

        Raises for one server as `tool` does. Of all servers, those out of reach are left out; events tell
        of them.
        """
        if server is not None:
            return (await self.manifest(server, context)).tools
        listed = await asyncio.gather(
            *(self._listed(id, context, wait=False) for id in await self.servers(context)),
            return_exceptions=True,
        )
        found = list(self._local.list())
        for judgement in listed:
            if isinstance(judgement, BaseException):
                if not isinstance(judgement, WireError):
                    raise judgement
            else:
                found.extend(self._visible(judgement.manifest, context))
        return tuple(found)

    async def servers(self, context: CallContext) -> tuple[str, ...]:
        """The ids of the servers that the caller may reach, in the order of the registry."""
        await self._looked(ToolUri.mcp("*", "*"), context)
        return self._access.servers(context.principals)

    def local_tools(self) -> tuple[Tool, ...]:
        """The tools of this process, in the order of their addresses."""
        return self._local.list()

    def label_of(self, uri: ToolUri) -> Label:
        """The label of what a tool says of itself, its name, texts and schemas: of a server, its server's.

        Tools of this process are the project's own. Raises NotFoundError for an unknown server.
        """
        if uri.scheme != "mcp":
            return TRUSTED
        return self._registry.get(uri.server).trust.join(
            Label(sources=frozenset((Source(uri.server, uri.name),)))
        )

    async def manifest(self, server: str, context: CallContext) -> Manifest:
        """What one server offers to this caller; to the operator with the definitions that were passed over.

        Raises as `tool` does.
        """
        await self._looked(ToolUri.mcp(server, "*"), context)
        denial = self._access.server_denial(server, context.principals)
        if denial is not None:
            await self._recorder.lookup_refused(
                ToolUri.mcp(server, "*"), context, denial.rule, denial.place, denial.kind
            )
            if is_told(context.principals):
                raise _refused(denial)
            raise self._access.unknown_server(server, context.principals)
        judgement = await self._listed(server, context, wait=False)
        told = is_told(context.principals)
        if judgement.waiting and told:
            raise _refused(held_denial(ToolUri.mcp(server, ""), "waiting"))
        manifest = judgement.manifest
        dropped = manifest.dropped if told else ()
        return msgspec.structs.replace(manifest, tools=self._visible(manifest, context), dropped=dropped)

    async def review(self, server: str, context: CallContext, *, fresh: bool = True) -> Review:
        """Each tool that a server lists beside its pin, for the person who approves them.

        Raises as `tool` does.
        """
        await self._looked(ToolUri.mcp(server, "*"), context)
        denial = self._access.server_denial(server, context.principals)
        if denial is not None:
            raise _refused(denial)
        manifest = await self._manager.manifest(server, fresh=fresh, context=context)
        return await self._pins.review(manifest)

    def endorse(
        self, value: Labelled[Any], closed: ClosedType, reason: str, context: CallContext
    ) -> Labelled[Any]:
        """The value as a trusted one, for the reason given.

        Raises Refused where it is not of the closed type or who asks was turned off, and AuditError.
        """
        if denial := self._off("", context.principals):
            raise _refused(denial)
        done = endorsed(value, closed, source_of(context))
        self._recorder.write(record_of(value, closed, reason, context, done=done is not None))
        if done is None:
            raise misfit(closed, context)
        return done

    async def refused(self, what: str, context: CallContext, rule: str, place: str) -> None:
        """Write down that something was refused before it came to a call. Raises AuditError."""
        await self._recorder.lookup_refused(what, context, rule, place)

    # Guards of the gateway's own

    async def _told(self, call: GateCall, inner: Next) -> Up:
        """Tell the observers that a call began and how it ended."""
        wanted = call.call
        context = wanted.context
        self._observers.notify(
            CallStarted(
                at=self._clock.now(),
                call_id=wanted.id,
                uri=wanted.uri,
                principal=context.principals[-1] if context.principals else "",
                run=context.run,
                step=context.step,
            )
        )
        began = self._clock.monotonic()
        outcome = "cancelled"
        try:
            result = await inner(call)
            outcome = _outcome_of(result)
        except LuthierError as error:
            outcome = kind_of(error)
            raise
        finally:
            self._observers.notify(
                CallEnded(
                    at=self._clock.now(),
                    call_id=wanted.id,
                    uri=wanted.uri,
                    outcome=outcome,
                    duration=(self._clock.monotonic() - began) * 1000,
                    run=context.run,
                    step=context.step,
                )
            )
        return result

    def _admitted(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Refuse what the caller may not use; to who must not know of it, it is not there."""
        denial = self._access.denial(call.call.uri, call.call.context.principals)
        return inner(call) if denial is None else self._denied(call, denial)

    async def _denied(self, call: GateCall, denial: Denial) -> Up:
        uri, context = call.call.uri, call.call.context
        if is_told(context.principals):
            return call.refuse(
                denial.kind, denial.reason, rule=denial.rule, place=denial.place, hint=denial.hint
            )
        call.ledger.rule, call.ledger.place, call.ledger.kind = denial.rule, denial.place, denial.kind
        raise await self._absent(uri, context)

    def _shown(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Keep from these callers what policies deny to them whatever the arguments."""
        tool = call.tool
        denial = self._policy.denial(tool, call.call.context.principals) if tool is not None else None
        return inner(call) if denial is None else self._denied(call, denial)

    def _takes_headers(self, uri: ToolUri) -> bool:
        return uri.scheme == "mcp" and self._manager.takes_headers(uri.server)

    def _resolved(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Look the tool up, connecting to its server if need be. Only a tool as it was approved is found."""
        wanted = call.call
        tool = None
        if wanted.uri.scheme == "mcp":
            tool = self._manager.known(wanted.uri, wanted.context, wanted.list_age)
        if tool is None or not self._pins.is_good(tool):
            return self._found(call, inner, tool)
        call.ledger.resolved = self._clock.monotonic()
        return inner(GateCall(wanted, call.label, call.ledger, tool))

    async def _found(self, call: GateCall, inner: Next, known: Tool | None) -> Up:
        wanted = call.call
        fitting = known is not None and await self._pins.fits(known)
        found = known if known and fitting else await self._find(wanted.uri, wanted.context)
        if not isinstance(found, Tool):
            return await self._denied(call, found)
        call.ledger.resolved = self._clock.monotonic()
        return await inner(GateCall(wanted, call.label, call.ledger, found))

    def _unchanged(self, call: GateCall, inner: Next) -> Awaitable[Up]:
        """Look again at the tool of a call that was kept waiting: it must be what was approved and judged."""
        if self._clock.monotonic() - call.ledger.resolved < LONG or call.call.uri.scheme != "mcp":
            return inner(call)
        return self._looked_at_again(call, inner)

    async def _looked_at_again(self, call: GateCall, inner: Next) -> Up:
        uri, context = call.call.uri, call.call.context
        tool = self._manager.known(uri, context)
        found = tool if tool and await self._pins.fits(tool) else await self._find(uri, context)
        if not isinstance(found, Tool):
            return await self._denied(call, found)
        if call.tool is None or not is_equal(found, call.tool):
            return await self._denied(call, held_denial(uri, "changed"))
        return await inner(call)

    async def _carried(self, call: GateCall) -> Up:
        """Carry the call and label what comes back: nothing above this line sees an unlabelled result."""
        wanted, tool = call.call, call.tool
        if tool is None:
            raise RuntimeError("the tool must be looked up before it is called")
        began = self._clock.monotonic()
        if wanted.uri.scheme == "mcp":
            trust = self._registry.get(wanted.uri.server).trust
            reply = await self._manager.carry(wanted, tool)
        else:
            trust = self._local.get(wanted.uri).label
            reply = await self._local.run(wanted)
        return ToolResult(
            uri=wanted.uri,
            call_id=wanted.id,
            reply=reply,
            duration=(self._clock.monotonic() - began) * 1000,
            label=_label_of_result(trust.join(reply.label), call),
        )

    # Finding tools

    async def _looked(self, uri: ToolUri, context: CallContext) -> None:
        """See to it that what is turned off is known: a server that is off is not started to be asked."""
        if self._switch is not None and (denial := await self._switch.blindness()):
            await self._recorder.lookup_refused(uri, context, denial.rule, denial.place)
            raise _refused(denial)

    def _timed(self, call: ToolCall) -> ToolCall:
        """A call's own time runs from here on, whatever part of it the looking up takes."""
        if call.timeout is None:
            return call
        deadline = self._clock.monotonic() + call.timeout
        context = call.context
        if context.deadline is not None and context.deadline <= deadline:
            return call
        return msgspec.structs.replace(call, context=msgspec.structs.replace(context, deadline=deadline))

    async def _listed(self, server: str, context: CallContext, *, wait: bool = True) -> Judgement:
        """What a server lists, without what waits for approval; it is not even asked if all of it does.

        `wait` False: it is no call, so its first list need not have been pinned yet.
        """
        if await self._pins.waits(server):
            return Judgement(Manifest(server=server), waiting=True)
        return await self._pins.judge(await self._manager.manifest(server, context=context), wait=wait)

    async def _allowed(
        self, uri: ToolUri, context: CallContext, list_age: float | None = None
    ) -> Tool | Denial:
        denial = self._access.denial(uri, context.principals)
        found = await self._find(uri, context, list_age) if denial is None else denial
        if isinstance(found, Denial):
            return found
        return self._policy.denial(found, context.principals) or found

    async def _find(self, uri: ToolUri, context: CallContext, list_age: float | None = None) -> Tool | Denial:
        """The tool, or why it is held back. Raises NotFoundError."""
        if uri.scheme != "mcp":
            return self._local.get(uri).tool
        known = None if list_age is None else self._manager.known(uri, context, list_age)
        if known is not None and await self._pins.fits(known):
            return known
        judgement = await self._listed(uri.server, context)
        tool = judgement.manifest.find(uri.name)
        if tool is not None:  # asked again, and so remembered: its next call asks no more
            return tool if await self._pins.fits(tool) else held_denial(uri, "changed")
        if why := judgement.why(uri.name):
            return held_denial(uri, why)
        raise self._unknown_tool(uri, judgement.manifest, context)

    async def _absent(self, uri: ToolUri, context: CallContext) -> NotFoundError:
        """The very error that the caller would get if the thing were not there."""
        if self._access.server_denial(uri.server, context.principals) is not None:
            return self._access.unknown_server(uri.server, context.principals)
        judgement = await self._listed(uri.server, context)
        return self._unknown_tool(uri, judgement.manifest, context)

    def _unknown_tool(self, uri: ToolUri, manifest: Manifest, context: CallContext) -> NotFoundError:
        names = [tool.name for tool in self._visible(manifest, context)]
        return NotFoundError("tool", uri.name, near=near(uri.name, names), where=f"on server {uri.server!r}")

    def _visible(self, manifest: Manifest, context: CallContext) -> tuple[Tool, ...]:
        principals = context.principals
        return tuple(
            tool
            for tool in manifest.tools
            if self._access.denial(tool.uri, principals) is None
            and self._policy.denial(tool, principals) is None
        )


def _label_of_result(trust: Label, call: GateCall) -> Label:
    """The server's trust, the call as a source, and all that went into it: an echo launders nothing."""
    wanted = call.call
    own = Source(wanted.uri.server, wanted.uri.name, wanted.id)
    sources = frozenset((own,)) if not trust.sources else trust.sources | {own}
    return Label(trust.integrity, trust.confidentiality, sources).join(call.label)


def _outcome_of(result: Up) -> str:
    if isinstance(result, Refusal):
        return "refused"
    return "error" if result.is_error else "ok"


def _refused(denial: Denial) -> Refused:
    return Refused(denial.kind, denial.reason, rule=denial.rule, place=denial.place, hint=denial.hint)
