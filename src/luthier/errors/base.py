"""The root, the faults of files and inputs, and the errors of the house itself."""

from __future__ import annotations

from dataclasses import dataclass
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
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

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
    """No such thing. `near` holds the nearest names that the caller may see.

    `absent` says no more than that it is not there. What has no name that can be shown has an empty one.
    """

    kind = "protocol"

    def __init__(
        self, what: str, name: str, *, near: Sequence[str] = (), where: str = "", hint: str = ""
    ) -> None:
        place = f" {where}" if where else ""
        nearest = f" Did you mean {' or '.join(near)}?" if near else ""
        self.absent = f"There is no {what} {name!r}" if name else f"There is no {what}"
        super().__init__(f"{self.absent}{place}.{nearest}", hint=hint)
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


class RunError(LuthierError):
    """Something about a run that is kept: how it stands does not allow what was wanted."""

    def __init__(self, message: str, *, run: str, hint: str = "") -> None:
        super().__init__(message, hint=hint or f"See how it stands: luthier runs show {run}")
        self.run = run

    def facts(self) -> dict[str, Any]:
        return {"run": self.run}


class RunLostError(RunError):
    """Another process goes on with the run, or went on with it meanwhile. Nothing of ours was written."""

    def __init__(self, run: str, owner: str = "") -> None:
        who = f" ({owner})" if owner else ""
        super().__init__(f"The run {run} goes on in another process{who}.", run=run)
        self.owner = owner

    def facts(self) -> dict[str, Any]:
        return {"run": self.run, "owner": self.owner}


class RunChangedError(RunError):
    """A run cannot be resumed, because its ensemble is not the one any more that it began with."""

    def __init__(self, run: str, ensemble: str, file: str = "") -> None:
        where = f" ({file})" if file else ""
        hint = f"Bring it back as it was, or end the run: luthier runs cancel {run}"
        message = f"The ensemble {ensemble!r}{where} was changed since the run {run} began."
        super().__init__(message, run=run, hint=hint)
        self.ensemble = ensemble

    def facts(self) -> dict[str, Any]:
        return {"run": self.run, "ensemble": self.ensemble}


class SecretError(LuthierError):
    """A secret cannot be had, kept or decrypted: the vault, its key, a keyring or a file says no."""

    kind = "connect"


class StoreError(LuthierError):
    """The store cannot be read or written, or is of a later version. A guard that needs it denies."""

    kind = "denied"


class MockError(LuthierError):
    """A test or a replay has no answer for what was called: its author must hear of it."""


class ResultWithheldError(AuditError):
    """The call was carried, but its outcome could not be recorded, or a guard failed on it. Never retried."""

    kind = "unknown"


class Refused(LuthierError):
    """The gate said no. `reason` is for the caller; `rule` and `place` say which, and where it stands.

    `hint` says what would allow it.
    """

    def __init__(self, kind: str, reason: str, *, rule: str, place: str, hint: str) -> None:
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


class CallerError(LuthierError):
    """Whoever called cannot be asked, or gave no answer. `needs`: what its client would need."""

    kind = "protocol"

    def __init__(self, message: str, *, needs: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.needs = needs

    def facts(self) -> dict[str, Any]:
        return {"needs": self.needs} if self.needs else {}


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


def _cut(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
