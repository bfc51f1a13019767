"""Which trace a call belongs to: the W3C trace context (`traceparent`, `tracestate`) that goes along with it.

Luthier makes no spans: it hands on what its caller gave, so that whoever serves the call finds the caller's
span as its parent, and notes the trace's id in the audit log.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Self

import msgspec

PARENT, STATE = "traceparent", "tracestate"
"""The names of both, in HTTP headers and in `_meta`."""

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?")
_STATE = re.compile(r"[ -~\t]{1,512}")
_VERSION = "00"
_NO_VERSION = "ff"


class Trace(msgspec.Struct, frozen=True):
    """`parent` is a whole `traceparent`, `state` the `tracestate` that came with it."""

    parent: str
    state: str = ""

    @classmethod
    def read(cls, parent: object, state: object = None) -> Self | None:
        """What a caller says; None where it says nothing that counts, as the standard has it."""
        found = _PARENT.fullmatch(parent) if isinstance(parent, str) else None
        if found is None:
            return None
        version, trace, span, flags, more = found.groups()
        if (
            version == _NO_VERSION
            or (more and version == _VERSION)
            or not int(trace, 16)
            or not int(span, 16)
        ):
            return None
        kept = state if isinstance(state, str) and _STATE.fullmatch(state) else ""
        return cls(f"{_VERSION}-{trace}-{span}-{flags}", kept)

    @classmethod
    def fresh(cls) -> Self:
        """One of its own, at random; marked as recorded, as the audit log does that."""
        return cls(f"{_VERSION}-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01")

    @property
    def id(self) -> str:
        """The 32 digits that all of one trace share."""
        return self.parent[3:35]

    @property
    def meta(self) -> dict[str, Any]:
        """What goes into a request's `_meta`."""
        return {PARENT: self.parent, STATE: self.state} if self.state else {PARENT: self.parent}
