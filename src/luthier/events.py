"""What is told while things happen: a closed union of frozen events, and the port of those who listen.

Events are for progress, logs and metrics. They are lossy and carry no values, and what they say is redacted;
the run record and the audit log are kept elsewhere. An observer may fail; what it watches never does because
of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from luthier.redaction import logger, redact
from luthier.taint import UNTRUSTED, Label
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_log = logger("luthier.events")


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    at: float  # Unix seconds


class ServerStarting(_Event, frozen=True):
    """A connection is being opened; `attempt` counts from 1."""

    server: str
    attempt: int = 1


class ServerReady(_Event, frozen=True):
    """A session stands."""

    server: str
    protocol: str
    seconds: float


class ServerFailed(_Event, frozen=True):
    """An attempt failed; `retry_in` is seconds until the next, None when there is none."""

    server: str
    message: str
    retry_in: float | None = None


class ServerStopped(_Event, frozen=True):
    """A connection has ended; `reason` is empty when it was closed on purpose."""

    server: str
    reason: str = ""


class ServerNoise(_Event, frozen=True):
    """Something on the wire was not a message, or not a usable one, and was passed over.

    What a server says by itself has its label: here, in the next, and where it tells of progress.
    """

    server: str
    message: str
    label: Label = UNTRUSTED


class ToolsAnnounced(_Event, frozen=True):
    """A server said that its list of tools is another one now."""

    server: str


class ToolsChanged(_Event, frozen=True):
    """A server lists its tools otherwise than they were pinned; what changed or is new is held back."""

    server: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    label: Label = UNTRUSTED


class CallStarted(_Event, frozen=True):
    """A call was intended."""

    call_id: str
    uri: ToolUri
    principal: str
    run: str = ""
    step: str = ""


class CallProgressed(_Event, frozen=True):
    """The server reported progress on a call."""

    call_id: str
    uri: ToolUri
    progress: float
    total: float | None = None
    message: str = ""
    run: str = ""
    step: str = ""
    label: Label = UNTRUSTED


class CallEnded(_Event, frozen=True):
    """A call came to its end; `outcome` is ok, error (the tool's own), refused, or the kind of the fault."""

    call_id: str
    uri: ToolUri
    outcome: str
    duration: float  # milliseconds
    run: str = ""
    step: str = ""


class RunBegan(_Event, frozen=True):
    """A run has started; `parent` names the run that it is nested in."""

    run: str
    ensemble: str
    steps: tuple[str, ...]
    parent: str = ""


class StepBegan(_Event, frozen=True):
    """A step has started."""

    run: str
    step: str
    operation: str
    attempt: int = 1


class StepDone(_Event, frozen=True):
    """A step has ended; `status` is ok, failed or skipped, `reason` says why where it is not ok."""

    run: str
    step: str
    status: str
    duration: float  # milliseconds
    reason: str = ""


class RunDone(_Event, frozen=True):
    """A run has ended here: for good, or `suspended` until somebody has decided."""

    run: str
    ensemble: str
    success: bool
    duration: float  # milliseconds
    reason: str = ""
    suspended: bool = False


Event = (
    ServerStarting
    | ServerReady
    | ServerFailed
    | ServerStopped
    | ServerNoise
    | ToolsAnnounced
    | ToolsChanged
    | CallStarted
    | CallProgressed
    | CallEnded
    | RunBegan
    | StepBegan
    | StepDone
    | RunDone
)


_SAID: dict[type, str] = {
    ServerFailed: "message",
    ServerStopped: "reason",
    ServerNoise: "message",
    CallProgressed: "message",
    StepDone: "reason",
    RunDone: "reason",
}
"""The fields that repeat others' words. Most events have none: every call makes two of those."""


def _redacted(event: Event) -> Event:
    """The event with what others said in it redacted, if they said anything."""
    field = _SAID[type(event)]
    said = getattr(event, field)
    return msgspec.structs.replace(event, **{field: redact(said)}) if said else event


class Observer(Protocol):
    """Somebody who is told. Called on the loop: must not block."""

    def notify(self, event: Event) -> None:
        """Take note of one event."""


def _flattened(observers: Iterable[Observer]) -> Iterator[Observer]:
    """Each listener, those within others among them: what is said is looked over once."""
    for one in observers:
        if isinstance(one, Observers):
            yield from one._observers  # noqa: SLF001  (of the same class)
        else:
            yield one


class Observers:
    """All who listen, as one. A listener that raises is logged and passed over."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = tuple(_flattened(observers))

    def notify(self, event: Event) -> None:
        if type(event) in _SAID:
            event = _redacted(event)
        for observer in self._observers:
            try:
                observer.notify(event)
            except Exception:  # noqa: BLE001  (a listener must not harm what it listens to)
                _log.exception("observer %r failed on %s", observer, type(event).__name__)
