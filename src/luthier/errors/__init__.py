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
    ├── RunError               a run that is kept does not stand so that it can be done
    │   ├── RunChangedError    its ensemble was changed, so it cannot go on
    │   └── RunLostError       another process goes on with it
    ├── SecretError            a secret cannot be had, kept or decrypted
    ├── StoreError             the store cannot be read or written
    ├── MockError              a test, or a replay, has no answer for what was called
    ├── Refused                the gate said no (rt.call, tool.execute)
    ├── MCPToolError           the tool itself answered isError (tool.execute)
    ├── CallerError            whoever called from outside cannot be asked back
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
        ├── MessageTooLargeError  a message exceeds max_message_bytes
        └── ModelError         a model gave no answer
            └── ModelUnreachableError  its provider cannot be reached

`kind` is the word that a step's `error.kind` shows: connect, timeout, unknown, arguments, denied, approval,
protocol, code, condition, model or dependency; `cancelled` where a step or run was called off.
"""

from __future__ import annotations

from luthier.errors.base import (
    AuditError,
    CallerError,
    ExpressionError,
    Fault,
    FaultsError,
    InputError,
    LuthierError,
    MCPToolError,
    MockError,
    NotFoundError,
    RecordError,
    Refused,
    ResultWithheldError,
    RunChangedError,
    RunError,
    RunLostError,
    SchemaError,
    SecretError,
    SpecError,
    StepError,
    StoreError,
    ToolDefinitionError,
    UnresolvedReferenceError,
)
from luthier.errors.model import ModelError, ModelFault, ModelUnreachableError
from luthier.errors.wire import (
    ApprovalNeededError,
    CallTimeoutError,
    CircuitOpenError,
    ConnectError,
    ConnectionLostError,
    HttpAnswer,
    HttpError,
    LoginNeededError,
    MessageTooLargeError,
    ProtocolError,
    WireError,
    approval_hint,
)

__all__ = [
    "ApprovalNeededError",
    "AuditError",
    "CallTimeoutError",
    "CallerError",
    "CircuitOpenError",
    "ConnectError",
    "ConnectionLostError",
    "ExpressionError",
    "Fault",
    "FaultsError",
    "HttpAnswer",
    "HttpError",
    "InputError",
    "LoginNeededError",
    "LuthierError",
    "MCPToolError",
    "MessageTooLargeError",
    "MockError",
    "ModelError",
    "ModelFault",
    "ModelUnreachableError",
    "NotFoundError",
    "ProtocolError",
    "RecordError",
    "Refused",
    "ResultWithheldError",
    "RunChangedError",
    "RunError",
    "RunLostError",
    "SchemaError",
    "SecretError",
    "SpecError",
    "StepError",
    "StoreError",
    "ToolDefinitionError",
    "UnresolvedReferenceError",
    "WireError",
    "approval_hint",
    "kind_of",
]


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
