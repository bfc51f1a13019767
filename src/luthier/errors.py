"""The exception tree of Luthier: faults of the wire, of files and of ourselves, with facts and a next step.

A tool's own error (`is_error`) is a result and a refusal is a decision; neither is raised inside the house.
They become exceptions (`MCPToolError`, `Refused`) only at the faces that Python users hold.

No error is born with a secret in it that this process knows: what errors say is redacted when they are made.

    LuthierError
    ├── SpecError              a file has faults; all of them at once
    ├── InputError             run inputs are missing or mistyped; all of them at once
    ├── UnresolvedReferenceError  a ${env.X} cannot be resolved
    ├── NotFoundError          no server, tool, ensemble or run of that name
    ├── ExpressionError        an expression cannot be parsed or evaluated
    ├── SchemaError            a JSON Schema cannot be used
    ├── ToolDefinitionError    a Python function cannot be made a tool
    ├── AuditError             the audit log cannot be written
    │   └── ResultWithheldError   the call was made, and its result may not be handed out
    ├── RecordError            the record of a run cannot be read
    ├── StoreError             the store cannot be read or written
    ├── Refused                the gate said no (rt.call, tool.execute)
    ├── MCPToolError           the tool itself answered isError (tool.execute)
    ├── StepError              an operation failed for a reason of its own
    └── WireError              the way to a server and back
        ├── ConnectError       no session: spawn, handshake, negotiation
        │   ├── LoginNeededError  a person must log in: `luthier servers login ID`
        │   └── ApprovalNeededError  an imported server waits for `luthier servers approve ID`
        ├── CallTimeoutError   no answer within the deadline
        ├── ConnectionLostError the connection ended under a call
        ├── ProtocolError      the peer broke the protocol, or answered with a JSON-RPC error
        ├── CircuitOpenError   the tool failed too often: nothing is sent until it may be tried again
        ├── HttpError          the peer answered with an HTTP status that is no success
        └── MessageTooLargeError  a message exceeds max_message_bytes

`kind` is the word that a step's `error.kind` shows: connect, timeout, unknown, arguments, denied, approval,
protocol, code, condition, model or dependency; `cancelled` where a step or run was called off.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from luthier.redaction import redact, redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LuthierError(Exception):
    """The root. `message` says what happened and where; `hint` what to do next, empty if nothing helps."""

    kind: ClassVar[str] = "code"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = redact(message)
        self.hint = redact(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def facts(self) -> dict[str, Any]:
        """The facts beyond kind and message, as JSON values: what a step's `error` shows besides them."""
        return {}

    def __reduce__(self) -> tuple[object, ...]:
        return _copied, (type(self), self.args), self.__dict__


def _copied(cls: type[LuthierError], args: tuple[object, ...]) -> LuthierError:
    # Past the constructor: those of the tree ask for more than the message that `args` holds.
    error = cls.__new__(cls)
    error.args = args
    return error


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in a file or an input. Lines and columns count from 1; 0 means that the place is unknown."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    suggestion: str = ""
    excerpt: str = ""  # the faulty source line and, below it, a caret; for expressions
    warning: bool = False

    @property
    def place(self) -> str:
        """`file:line:column`, as far as known."""
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        if self.suggestion:
            head = f"{head} ({self.suggestion})"
        return f"{head}\n{self.excerpt}" if self.excerpt else head


class FaultsError(LuthierError):
    """Several faults found together."""

    def __init__(self, faults: Sequence[Fault], *, hint: str = "") -> None:
        super().__init__("\n".join(str(fault) for fault in faults), hint=hint)
        self.faults = tuple(faults)


class SpecError(FaultsError):
    """Files that do not say what they must. `faults` holds every fault of every file read."""


class InputError(FaultsError):
    """Run inputs that do not fit the declared ones."""

    kind = "arguments"


class UnresolvedReferenceError(LuthierError):
    """A `${env.X}` whose variable is unset, or a reference of an unknown kind. Fails its own server only."""

    kind = "connect"

    def __init__(self, message: str, *, reference: str, place: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reference = reference
        self.place = place

    def facts(self) -> dict[str, Any]:
        return {"reference": self.reference, "place": self.place}


class NotFoundError(LuthierError):
    """No such thing. `near` holds the nearest names that the caller may see."""

    kind = "protocol"

    def __init__(
        self, what: str, name: str, *, near: Sequence[str] = (), where: str = "", hint: str = ""
    ) -> None:
        place = f" {where}" if where else ""
        nearest = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"There is no {what} {name!r}{place}.{nearest}", hint=hint)
        self.what = what
        self.name = name
        self.near = tuple(near)

    def facts(self) -> dict[str, Any]:
        return {"what": self.what, "name": self.name, "near": list(self.near)}


class ExpressionError(LuthierError):
    """An expression that cannot be parsed (`offset` is the column within it, from 0) or evaluated."""

    kind = "condition"

    def __init__(self, message: str, *, source: str = "", offset: int = -1, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.offset = offset

    @property
    def caret(self) -> str:
        """The expression with a caret below the offending column; empty when the column is not known."""
        if self.offset < 0 or not self.source:
            return ""
        start = self.source.rfind("\n", 0, self.offset) + 1
        end = self.source.find("\n", self.offset)
        line = self.source[start : end if end >= 0 else None]
        indent = "".join("\t" if character == "\t" else " " for character in line[: self.offset - start])
        return f"{line}\n{indent}^"


class SchemaError(LuthierError):
    """A JSON Schema that cannot be compiled: not a schema, too deep, too large, or with a remote `$ref`."""

    kind = "protocol"


class ToolDefinitionError(LuthierError):
    """A Python function that cannot be made a tool."""


class AuditError(LuthierError):
    """The audit log cannot be written; nothing is called until it can."""

    kind = "denied"


class RecordError(LuthierError):
    """The record of a run cannot be read: torn, foreign, or of a later version."""


class StoreError(LuthierError):
    """The store cannot be read or written, or is of a later version. A guard that needs it denies."""

    kind = "denied"


class ResultWithheldError(AuditError):
    """The call was carried, but its outcome could not be recorded, or a guard failed on it. Never retried."""

    kind = "unknown"


class Refused(LuthierError):
    """The gate said no. `reason` is for the caller; `rule` and `place` say which, and where it stands."""

    def __init__(self, kind: str, reason: str, *, rule: str = "", place: str = "", hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.refusal_kind = kind
        self.reason = self.message
        self.rule = rule
        self.place = place


class MCPToolError(LuthierError):
    """The tool answered, and its answer is an error. `content` is what it said."""

    kind = "protocol"

    def __init__(self, server: str, tool: str, content: object) -> None:
        super().__init__(f"Tool {tool!r} on server {server!r} returned an error: {_cut(str(content))}")
        self.server = server
        self.tool = tool
        self.content = content


class StepError(LuthierError):
    """An operation that failed for a reason of its own; the step's error kind travels with it."""

    def __init__(
        self, kind: str, message: str, *, facts: Mapping[str, Any] | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.step_kind = kind
        self._facts: dict[str, Any] = redact_value(dict(facts or {}))

    def facts(self) -> dict[str, Any]:
        return dict(self._facts)


class WireError(LuthierError):
    """The way to a server and back. `phase` is one of spawn, login, handshake, list, call, close."""

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        tool: str = "",
        phase: str = "",
        sent: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.server = server
        self.tool = tool
        self.phase = phase
        self.sent = sent  # the request had left us: its effect is not known

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"server": self.server, "phase": self.phase, "sent": self.sent}
        if self.tool:
            facts["tool"] = self.tool
        return facts


class ConnectError(WireError):
    """No session with the server. For a process: its exit status and the tail of its stderr (8 KiB)."""

    kind = "connect"

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        phase: str = "handshake",
        exit_status: int | None = None,
        stderr_tail: str = "",
        http: HttpError | None = None,
        retryable: bool = True,
        hint: str = "",
    ) -> None:
        super().__init__(message, server=server, phase=phase, hint=hint)
        self.exit_status = exit_status
        self.stderr_tail = redact(stderr_tail)
        self.http = http  # the answer that refused the session; its status 401 asks for a login
        self.retryable = retryable  # False: a fault of configuration, which no second try heals

    def facts(self) -> dict[str, Any]:
        facts = super().facts() | {"exit_status": self.exit_status, "stderr_tail": self.stderr_tail}
        return facts if self.http is None else self.http.facts() | facts


class LoginNeededError(ConnectError):
    """Nothing but a person's login gets any further; `server` names the entry to log in to."""

    def __init__(self, message: str, *, server: str) -> None:
        hint = f"Run: luthier servers login {server}"
        super().__init__(message, server=server, phase="login", retryable=False, hint=hint)


class ApprovalNeededError(ConnectError):
    """The server was imported and nobody has approved it: it is neither started nor reached."""

    kind = "approval"

    def __init__(self, *, server: str, place: str = "") -> None:
        where = f" ({place})" if place else ""
        super().__init__(
            f"Server {server!r} waits for approval{where}.",
            server=server,
            phase="approval",
            retryable=False,
            hint=approval_hint(server),
        )


def approval_hint(server: str) -> str:
    """What the operator does about a server that waits for approval."""
    return f"See what it would run or reach, and approve it: luthier servers approve {server}"


class CallTimeoutError(WireError):
    """No answer within the deadline; `sent` tells whether the server may have acted."""

    kind = "timeout"


class ConnectionLostError(WireError):
    """The connection ended under a call. Whether a request that had been sent took effect is not known."""

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        tool: str = "",
        phase: str = "call",
        sent: bool = True,
        exit_status: int | None = None,
        stderr_tail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, server=server, tool=tool, phase=phase, sent=sent, hint=hint)
        self.exit_status = exit_status
        self.stderr_tail = redact(stderr_tail)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"exit_status": self.exit_status, "stderr_tail": self.stderr_tail}


class ProtocolError(WireError):
    """The peer broke the protocol, or answered the request with a JSON-RPC error (`code`, `data`)."""

    kind = "protocol"

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        tool: str = "",
        phase: str = "call",
        code: int | None = None,
        data: object = None,
        sent: bool = True,
        hint: str = "",
    ) -> None:
        super().__init__(message, server=server, tool=tool, phase=phase, sent=sent, hint=hint)
        self.code = code
        self.data = redact_value(data)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"code": self.code}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer as facts. `excerpt` is up to 2 KiB of its body: a stranger's text, shown as data."""

    status: int
    retry_after: float | None = None  # seconds
    www_authenticate: str = ""
    request_id: str = ""  # what the server calls this request in its own logs
    excerpt: str = ""

    def __post_init__(self) -> None:
        for name in ("www_authenticate", "request_id", "excerpt"):
            object.__setattr__(self, name, redact(getattr(self, name)))


class HttpError(WireError):
    """The peer answered with an HTTP status that is no success."""

    kind = "protocol"

    def __init__(
        self,
        message: str,
        answer: HttpAnswer,
        *,
        server: str = "",
        tool: str = "",
        phase: str = "call",
        hint: str = "",
    ) -> None:
        super().__init__(message, server=server, tool=tool, phase=phase, sent=True, hint=hint)
        self.answer = answer

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks us to wait."""
        return self.answer.retry_after

    def facts(self) -> dict[str, Any]:
        return super().facts() | asdict(self.answer)


class CircuitOpenError(WireError):
    """The tool failed too often lately: nothing was sent. `retry_after` is seconds until it may be tried."""

    kind = "connect"

    def __init__(
        self, message: str, *, server: str = "", tool: str = "", retry_after: float = 0.0, hint: str = ""
    ) -> None:
        super().__init__(message, server=server, tool=tool, phase="call", hint=hint)
        self.retry_after = retry_after

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"retry_after": self.retry_after}


class MessageTooLargeError(WireError):
    """A message exceeds the server's `max_message_bytes`."""

    kind = "protocol"


def kind_of(error: BaseException) -> str:
    """The step error kind of any exception; what is not ours is a fault of `code`."""
    match error:
        case Refused():
            return error.refusal_kind
        case StepError():
            return error.step_kind
        case ConnectionLostError():
            return "unknown" if error.sent else "connect"
        case LuthierError():
            return error.kind
        case _:
            return "code"


def _cut(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
