"""What the audit log holds: names, hashes, labels, sizes and outcomes of calls; values only where asked for.

A line is `{"seq", "at", "prev", <the record's own fields>, "hash"}`. `prev` is the hash of the line before
(64 zeros in the first line); `hash` is the HMAC-SHA256 of the line as it would stand without that last field.
So who does not have the key can neither edit a line nor take one out or put one in, and the last line tells
on itself. What was cut off the end only a checkpoint can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from luthier.govern.keys import AuditKey

VERSION = 2
FIRST = "0" * 64

_HASH = b',"hash":"'
_TAIL = len(_HASH) + 64 + len(b'"}')


# gc=False: nothing in a record can refer back to it, and several are made for each call.
class _Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    # Filled in by the log when it writes, so they are left out of a record that was not written yet.
    seq: int = 0
    at: str = ""  # UTC
    prev: str = ""
    hash: str = ""


class Before(msgspec.Struct, frozen=True):
    """A segment that was there when this one began, and the hash of its last whole line by then."""

    segment: str
    hash: str


class SegmentOpened(_Record, frozen=True, tag="segment", gc=False):
    """The first line of a segment. `version` is the format's, `key` the id of the key of its chain.

    `before` names the segments whose end at that time no other segment names; `policies` is the hash of the
    policies that all calls of the segment are judged by.
    """

    version: int
    luthier: str
    pid: int
    key: str = ""
    before: tuple[Before, ...] = ()
    policies: str = ""


class Tag(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A label; `sources` are `server/tool#call`, without the call that the record is about."""

    integrity: str
    confidentiality: str
    sources: tuple[str, ...] = ()


class Verdict(_Record, frozen=True, tag="verdict", gc=False):
    """What the gate decided: allowed, refused, or failed (a fault came first; `reason` is its kind).

    `revoked` takes back what was allowed: the call was cut off while it was under way. `rule` and `place` say
    what decided; where that was the default, `rule` is `policies.default`.

    `arguments` is the SHA-256 of the arguments as they were judged, `names` are those of the top level;
    `label` is the join of the labels of the arguments and of the branch; `trace` is the id of a W3C trace.
    """

    call: str
    uri: str
    verdict: str
    reason: str = ""
    rule: str = ""
    place: str = ""
    principals: tuple[str, ...] = ()
    run: str = ""
    step: str = ""
    attempt: int = 1
    arguments: str = ""
    names: tuple[str, ...] = ()
    label: Tag | None = None
    approval: str = ""  # that the call was made with
    approver: str = ""
    trace: str = ""


class Intent(_Record, frozen=True, tag="intent", gc=False):
    """The call is about to be carried; without this line no call is.

    `pin` is the hash of the definition that a server's tool is called by, as `luthier tools diff` shows it.
    `sent` are the redacted arguments as JSON text, where the project asks for them.
    """

    call: str
    uri: str
    arguments: str = ""
    pin: str = ""
    sent: str = ""


class Outcome(_Record, frozen=True, tag="outcome", gc=False):
    """How a carried call ended. `outcome`: ok, error (the tool's own), cancelled, or the kind of the fault.

    `duration` is milliseconds from the intent on; `result` is the SHA-256 of the reply and `size` its
    length, both of its JSON text. `got` is the redacted reply, where the project asks for it.
    """

    call: str
    uri: str
    outcome: str
    duration: float
    result: str = ""
    size: int = 0
    label: Tag | None = None
    got: str = ""


class Asked(_Record, frozen=True, tag="asked", gc=False):
    """A person is asked about a call. `request` is the hash of all that an approval would be bound to."""

    call: str
    uri: str
    approval: str
    request: str
    rule: str = ""
    place: str = ""
    run: str = ""
    step: str = ""


class Decided(_Record, frozen=True, tag="decided", gc=False):
    """Somebody said yes or no to a request, to an imported server (`uri` is of all its tools) or to a tool.

    A request that nobody decided about in time is `expired`, by nobody.

    `via`: by cli, python, terminal or callback. Of servers and tools `approval` is the server's id and
    `request` the hash of what was approved; the pin of a tool that is gone is `removed`. What was decided and
    then not kept has a second line with the decision `not kept`.
    """

    call: str
    uri: str
    approval: str
    request: str
    decision: str
    by: str
    via: str = ""


class Pinned(_Record, frozen=True, tag="pinned", gc=False):
    """The first list of a server pinned itself: how many tools it has, and the SHA-256 of all of them.

    That is over a line `NAME HASH` for each, in the order of the names; HASH is of the bytes that were
    listed.
    """

    uri: str
    tools: int
    pins: str


class Switched(_Record, frozen=True, tag="switched", gc=False):
    """`server:ID` or `agent:NAME` was turned off or on. `to`: disabled, enabled, or, after it, not kept."""

    what: str
    to: str
    by: str
    via: str = ""


class Endorsed(_Record, frozen=True, tag="endorsed", gc=False):
    """A value was made trusted, or refused because it was not of the closed type. `value` is its SHA-256."""

    verdict: str
    type: str
    reason: str
    principals: tuple[str, ...] = ()
    run: str = ""
    step: str = ""
    attempt: int = 1
    value: str = ""
    label: Tag | None = None
    trace: str = ""


Record = SegmentOpened | Verdict | Intent | Outcome | Asked | Decided | Pinned | Switched | Endorsed

_encode = msgspec.json.Encoder().encode
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def write_line(record: Record, seq: int, at: str, prev: str, key: AuditKey) -> tuple[bytes, str]:
    """The line of a record, with its newline, and its hash."""
    body = b'{"seq":%d,"at":"%b","prev":"%b",%b' % (seq, at.encode(), prev.encode(), _encode(record)[1:])
    digest = key.mac(body)
    return b'%b,"hash":"%b"}\n' % (body[:-1], digest.encode()), digest


def read_line(line: bytes, key: AuditKey | None) -> Record:
    """Read a line without its newline back. Raises ValueError that says what is wrong with it.

    Without the key nobody can tell whether it was changed.
    """
    head, tail = line[:-_TAIL], line[-_TAIL:]
    if not tail.startswith(_HASH):
        raise ValueError("it is not a record")
    record = _decoded(line)
    if key is not None and key.mac(head + b"}") != record.hash:
        raise ValueError("it was changed: it does not have the hash that it names")
    return record


def _decoded(line: bytes) -> Record:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not a record: {error}") from None
