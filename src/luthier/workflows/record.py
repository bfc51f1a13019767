"""The record of a run: append-only entries `{seq, at, kind, step, attempt, data}` that fold to its state.

It holds values with their labels, which the events (lossy) and the audit log (no values) do not. In a file
each entry is one line of JSON. A value labelled secret is not kept: null stands in its place, and `withheld`
names the place; a secret that this process knows is blotted out of any other value.

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
from luthier.redaction import known
from luthier.taint import TRUSTED, Confidentiality, Label, Labelled, escape_pointer
from luthier.tools import Envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

VERSION = 1
"""Of this format. A record of a later one is refused."""

NULL: Labelled[Any] = Labelled(None)
WITHHELD = "withheld: it carries a secret"

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
    """A call is about to be handed to the gate."""

    call: str
    uri: str
    arguments: Labelled[Any] = NULL


class CallSettled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the call came back: ok, error (the tool's own), or the kind of the refusal or fault."""

    call: str
    outcome: str
    duration: float = 0.0


class Suspended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The attempt has let go, and goes on when somebody has decided about one of these requests.

    `what` it waits for: an answer, an approval of its call, what a server asks back, or a run inside. `token`
    is the SHA-256 of the token that decides; `asked` is what the server asked, `run` the run inside.
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


def encode(entry: Entry) -> bytes:
    """The entry as one line of JSON, newline included."""
    document = {
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind,
        "step": entry.step,
        "attempt": entry.attempt,
        "data": _fields(entry.data),
    }
    try:
        return msgspec.json.encode(document) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which only the standard encoder can spell
        return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def encode_all(entries: Iterable[Entry]) -> bytes:
    """A whole record, one line an entry."""
    return b"".join(map(encode, entries))


def decode(text: bytes) -> tuple[Entry, ...]:
    """Read a record back. Raises RecordError with the number of the line that cannot be read."""
    lines = text.split(b"\n")
    with uncollected():
        return tuple(_decoded(line, number) for number, line in enumerate(lines, 1) if line.strip())


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


class _Line(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is written, its data still in plain values."""

    seq: int
    at: float
    kind: str
    step: str
    attempt: int
    data: dict[str, Any]


_LINES = msgspec.json.Decoder(_Line)


def _decoded(line: bytes, number: int) -> Entry:
    try:
        read = _parsed(line)
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
        return _LINES.decode(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(line), _Line)


def _read(name: str, value: Any) -> Any:
    reader = _READERS.get(name)
    return value if reader is None else reader(value)


def _fields(data: Data) -> dict[str, Any]:
    kept = {}
    for name in data.__struct_fields__:
        value = getattr(data, name)
        if value is None or value is NULL or value is TRUSTED:
            continue
        if type(value) is Failure:
            secret = _label_of(data).confidentiality is Confidentiality.secret
            kept[name] = _kept_failure(value, secret=secret)
        else:
            write = _WRITERS.get(type(value))
            kept[name] = value if write is None else write(value)
    return kept


def _label_of(data: Data) -> Label:
    match data:
        case StepEnded() | AttemptFailed():
            return data.label
        case RunEnded():
            return data.output.label
        case _:
            return TRUSTED


def _kept_failure(failure: Failure, *, secret: bool) -> dict[str, Any]:
    if secret:
        return {"kind": failure.kind, "message": WITHHELD}
    facts = _plain(failure.facts, "", set(), [])
    return {"kind": failure.kind, "message": failure.message, "facts": facts, "note": failure.note}


def keep_labelled(labelled: Labelled[Any]) -> dict[str, Any]:
    """`{value, label?, parts?, envelopes?, withheld?}`; the last two are lists of JSON Pointers."""
    if labelled.label.confidentiality is Confidentiality.secret:
        return {"value": None, "label": labelled.label.to_json(), "withheld": [""]}
    parts = labelled.parts.items()
    secret = {pointer for pointer, label in parts if label.confidentiality is Confidentiality.secret}
    envelopes: list[str] = []
    kept: dict[str, Any] = {"value": _plain(labelled.value, "", secret, envelopes)}
    if labelled.label is not TRUSTED and labelled.label != TRUSTED:
        kept["label"] = labelled.label.to_json()
    if parts:
        kept["parts"] = {pointer: label.to_json() for pointer, label in parts}
    if envelopes:
        kept["envelopes"] = envelopes
    if secret:
        kept["withheld"] = sorted(secret)
    return kept


def _plain(value: Any, pointer: str, withheld: set[str], envelopes: list[str]) -> Any:
    """The value as plain JSON, null at the pointers that are withheld; notes where an envelope stood."""
    if pointer in withheld:
        return None
    match value:
        case str():
            return known.blot_known(value)
        case None | int() | float():
            return value
        case dict():
            return _plain_members(value, pointer, withheld, envelopes)
        case list() | tuple():
            return [
                _plain(item, f"{pointer}/{index}", withheld, envelopes) for index, item in enumerate(value)
            ]
        case Envelope():
            envelopes.append(pointer)
            return _plain_members(_spread(value), pointer, withheld, envelopes)
        case _:
            return value


def _plain_members(
    members: Mapping[str, Any], pointer: str, withheld: set[str], envelopes: list[str]
) -> dict[str, Any]:
    return {
        key: _plain(item, f"{pointer}/{escape_pointer(key)}", withheld, envelopes)
        for key, item in members.items()
    }


def read_labelled(kept: Any) -> Labelled[Any]:
    """Read `keep_labelled` back."""
    label = Label.from_json(kept["label"]) if "label" in kept else TRUSTED
    parts = {pointer: Label.from_json(part) for pointer, part in kept.get("parts", {}).items()}
    envelopes = kept.get("envelopes", ())
    value = _enveloped(kept["value"], envelopes) if envelopes else kept["value"]
    return Labelled(value, label, parts)


def _enveloped(value: Any, envelopes: Iterable[str]) -> Any:
    """The value with envelopes at these pointers; what has none below is not looked through."""
    tree: dict[str, Any] = {}
    for pointer in envelopes:
        branch = tree
        for part in pointer.split("/")[1:]:
            branch = branch.setdefault(part, {})
        branch[_HERE] = True
    return _grown(value, tree)


_HERE = "/"  # no part of a pointer has a slash


def _grown(value: Any, tree: dict[str, Any]) -> Any:
    for part, branch in tree.items():
        if part != _HERE:
            key = int(part) if isinstance(value, list) else part.replace("~1", "/").replace("~0", "~")
            value[key] = _grown(value[key], branch)
    return _gathered(value) if _HERE in tree else value


def _spread(envelope: Envelope) -> dict[str, Any]:
    """All of an envelope; its blocks only where they are not the content already."""
    fields, blocks = envelope.fields(), envelope.raw_blocks()
    return fields if blocks is None or blocks is fields["content"] else {**fields, "blocks": blocks}


def _gathered(fields: dict[str, Any]) -> Envelope:
    content = fields["content"]
    blocks = fields.pop("blocks", content if isinstance(content, list) else None)
    return Envelope(fields, blocks)


def _read_failure(kept: Any) -> Failure:
    return msgspec.convert(kept, Failure)


_WRITERS: dict[type, Callable[[Any], Any]] = {Labelled: keep_labelled, Label: Label.to_json}
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
