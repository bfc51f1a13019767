"""The way to a server and back: what can go wrong on it, with the facts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from luthier.errors.base import LuthierError
from luthier.redaction import redact, redact_value


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
