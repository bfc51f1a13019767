"""The record of a run: append-only entries `{seq, at, kind, step, attempt, data}` that fold to its state.

It holds values with their labels, which the events (lossy) and the audit log (no values) do not. Written,
each entry is one line of JSON. A value labelled secret is left out: null stands in its place, and `withheld`
names the place; a secret that this process knows is blotted out of any other value. A store with keys can
write the whole entry beside it, encrypted, as `sealed`.

Nothing that an entry holds can lead back to it, so entries are none of the garbage collector's business
(`gc=False`): a long run has many thousands of them.
"""

from __future__ import annotations

import gc
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from luthier.errors import RecordError
from luthier.taint import TRUSTED, Confidentiality, Label, Labelled
from luthier.workflows.kept import keep_labelled, plain, read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

VERSION = 1
"""Of this format. A record of a later one is refused."""

NULL: Labelled[Any] = Labelled(None)
WITHHELD = "withheld: it carries a secret"

ASKS = "asks"
"""How a call came back whose server wants something first."""

Waits = Literal["hitl", "approval", "input", "run"]
Verdict = Literal["approved", "denied", "expired"]
End = Literal["ok", "failed", "skipped", "blocked", "cancelled"]
"""How a step ends: by itself, by its own condition, by another step's failure, or by being called off."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why something failed. `facts` stand beside kind and message; `note` is for the operator only."""

    kind: str
    message: str
    facts: dict[str, Any] = {}
    note: str = ""

    def view(self) -> dict[str, Any]:
        """What `${step.error}` shows."""
        return {**self.facts, "kind": self.kind, "message": self.message}


class RunStarted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`plan` is the plan's digest, `parent` the run around this one, `control` the caller's branch.

    `principals` are those who call, outermost first; `deadline` is in Unix seconds.
    """

    run: str
    ensemble: str
    plan: str
    inputs: Labelled[Any] = NULL
    parent: str = ""
    control: Label = TRUSTED
    principals: tuple[str, ...] = ()
    deadline: float | None = None
    version: int = VERSION


class RunTaken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A process goes on with the run from here: the number of this entry keeps all others from it."""

    owner: str


class RunLeft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The process that drove the run has let go of it; another may go on with it from here."""


class BranchTaken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A condition was read: true or false, with the label of what it looked at.

    Of a switch: whether one of its cases is meant, and which.
    """

    taken: bool
    case: str | None = None
    label: Label = TRUSTED


class ItemsRead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The list that a loop goes over."""

    items: Labelled[Any] = NULL


class StepStarted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt began. A parallel group starts too, when its members may."""


class CallIntended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The gate has let a call pass, and it is about to be sent: from here on it may have been."""

    call: str
    uri: str
    arguments: Labelled[Any] = NULL


class CallSettled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the call came back: ok, error (the tool's own), asks, or the kind of the refusal or fault.

    One that did not pass the gate was never intended. One that `asks` for something has done nothing so far.
    """

    call: str
    outcome: str
    duration: float = 0.0


class Suspended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The attempt has let go, and goes on when somebody has decided about one of these requests.

    `what` it waits for: an answer, an approval of its call, what a server asks back, or a run inside. `token`
    is the SHA-256 of the token that decides; `asked` is what the server asked, `run` the run inside. Where
    that is an evaluator's, `asked` is what it is to judge.
    """

    what: Waits
    requests: tuple[str, ...] = ()
    prompt: str = ""
    schema: dict[str, Any] | None = None
    expires: float = 0.0
    token: str = ""
    asked: Labelled[Any] = NULL
    run: str = ""


class Resumed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """It was decided, or its time is up: the attempt is made again. `by` is empty where nobody decided."""

    decision: Verdict
    request: str = ""
    answer: Labelled[Any] = NULL
    by: str = ""
    reason: str = ""


class AttemptFailed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt failed and another will be made `retry_in` seconds later."""

    error: Failure
    retry_in: float
    label: Label = TRUSTED


class StepEnded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The one end of a step. `label` is that of its status fields; `duration` is milliseconds.

    `state` are the fields of the run's state that it sets, `score` what it was judged.
    """

    end: End
    output: Labelled[Any] = NULL
    error: Failure | None = None
    label: Label = TRUSTED
    duration: float = 0.0
    cached: bool = False
    state: Labelled[Any] = NULL
    score: float | None = None


class RunHalted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The run is stopped from outside, by its user or its deadline: steps that run are cancelled."""

    error: Failure


class RunEnded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`error` is set where the run failed, and `step` is where. `response` is `{status, headers}`."""

    success: bool
    output: Labelled[Any] = NULL
    error: Failure | None = None
    step: str = ""
    duration: float = 0.0
    response: Labelled[Any] = NULL
    cached: bool = False


Data = (
    RunStarted
    | RunTaken
    | RunLeft
    | BranchTaken
    | ItemsRead
    | StepStarted
    | CallIntended
    | CallSettled
    | Suspended
    | Resumed
    | AttemptFailed
    | StepEnded
    | RunHalted
    | RunEnded
)
KINDS: dict[str, Callable[..., Data]] = {kind.__name__: kind for kind in get_args(Data)}


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that happened. `seq` counts from 1, `at` is Unix seconds, `step` is empty for the run."""

    seq: int
    at: float
    data: Data
    step: str = ""
    attempt: int = 0

    @property
    def kind(self) -> str:
        return type(self.data).__name__


class _Line(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An entry as it is written, its data still in plain values."""

    seq: int
    at: float
    kind: str
    step: str
    attempt: int
    data: dict[str, Any]
    sealed: Any = None


_WRITE = msgspec.json.Encoder().encode
_READ = msgspec.json.Decoder(_Line).decode


def encode(entry: Entry, *, whole: bool = False, sealed: Any = None) -> bytes:
    """The entry as one line of JSON, newline included. `whole`: with its secrets."""
    data = _fields(entry.data, whole=whole)
    line = _Line(entry.seq, entry.at, entry.kind, entry.step, entry.attempt, data, sealed)
    try:
        return _WRITE(line) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which only the standard encoder can spell
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode() + b"\n"


def encode_all(entries: Iterable[Entry]) -> bytes:
    """A whole record, one line an entry."""
    return b"".join(map(encode, entries))


def withholds(entry: Entry) -> bool:
    """Whether something of it is not written unless it is written whole."""
    if _label_of(entry.data).confidentiality is Confidentiality.secret:
        return True
    for value in msgspec.structs.astuple(entry.data):
        if type(value) is Labelled and value.whole.confidentiality is Confidentiality.secret:
            return True
    return False


def decode(text: bytes, unseal: Callable[[Any, int], bytes] | None = None) -> tuple[Entry, ...]:
    """Read a record back. `unseal` gives the whole line of an entry from what is `sealed` in it.

    Raises RecordError with the number of the line that cannot be read.
    """
    lines = text.split(b"\n")
    with uncollected():
        return tuple(_decoded(line, number, unseal) for number, line in enumerate(lines, 1) if line.strip())


@contextmanager
def uncollected() -> Iterator[None]:
    """For what makes many values that all stay: the collector would look through them over and over."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _decoded(line: bytes, number: int, unseal: Callable[[Any, int], bytes] | None) -> Entry:
    try:
        read = _parsed(line)
        if read.sealed is not None and unseal is not None:
            read = _parsed(unseal(read.sealed, read.seq))
        data = KINDS[read.kind](**{name: _read(name, value) for name, value in read.data.items()})
        if isinstance(data, RunStarted) and data.version > VERSION:
            raise RecordError(
                f"line {number}: the record is of version {data.version}, this program reads {VERSION}"
            )
        return Entry(seq=read.seq, at=read.at, step=read.step, attempt=read.attempt, data=data)
    except (LookupError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise RecordError(f"line {number} of the record cannot be read: {error}") from error


def _parsed(line: bytes) -> _Line:
    try:
        return _READ(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(line), _Line)


def _read(name: str, value: Any) -> Any:
    reader = _READERS.get(name)
    return value if reader is None else reader(value)


def _fields(data: Data, *, whole: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in msgspec.structs.asdict(data).items():
        if value is None or value is NULL or value is TRUSTED:
            continue
        write = _WRITERS.get(type(value))
        kept[name] = value if write is None else write(value, data, whole)
    return kept


def _label_of(data: Data) -> Label:
    match data:
        case StepEnded() | AttemptFailed():
            return data.label
        case RunEnded():
            return data.output.label
        case _:
            return TRUSTED


def _kept_failure(failure: Failure, data: Data, whole: bool) -> dict[str, Any]:  # noqa: FBT001  (a writer)
    if not whole and _label_of(data).confidentiality is Confidentiality.secret:
        return {"kind": failure.kind, "message": WITHHELD}
    facts = plain(failure.facts, "", set(), [])
    return {"kind": failure.kind, "message": failure.message, "facts": facts, "note": failure.note}


def _read_failure(kept: Any) -> Failure:
    return msgspec.convert(kept, Failure)


_WRITERS: dict[type, Callable[[Any, Data, bool], Any]] = {
    Labelled: lambda value, _, whole: keep_labelled(value, whole=whole),
    Label: lambda value, *_: value.to_json(),
    Failure: _kept_failure,
}
"""What writes a value of a type, given the data that it is of and whether it is written whole."""
_READERS: dict[str, Callable[[Any], Any]] = {
    "inputs": read_labelled,
    "arguments": read_labelled,
    "output": read_labelled,
    "response": read_labelled,
    "state": read_labelled,
    "items": read_labelled,
    "asked": read_labelled,
    "answer": read_labelled,
    "requests": tuple,
    "label": Label.from_json,
    "control": Label.from_json,
    "principals": tuple,
    "error": _read_failure,
}
