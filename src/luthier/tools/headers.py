"""Headers of HTTP: which of them others may write, and what a value may hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from luthier.redaction import known
from luthier.secrets import Secret
from luthier.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
)
"""Headers that say how a message is framed: another's word on that would let one request become two."""

_OURS = FRAMING | {
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-type",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "proxy-connection",
    "x-conductor-signature",
    "x-conductor-timestamp",
}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def wrapped(headers: Mapping[str, str | Secret]) -> dict[str, Secret]:
    """Headers as a call holds them: nobody sees the values, and what shows up of them is blotted out.

    What is no text stays as it is, for `call_fault` to find.
    """
    made = {name: Secret(value) if isinstance(value, str) else value for name, value in headers.items()}
    for value in made.values():
        if isinstance(value, Secret):
            known.add(value.reveal().rpartition(" ")[2])  # without the name of a scheme
    return made


def name_fault(name: Any, ours: frozenset[str] = FRAMING) -> str | None:
    """Why nobody but Luthier may write a header of that name; None where others may."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # Python callers may hand us anything
        return f"{one_line(repr(name), 60)} is not a name of a header"
    return f"the header {name} is Luthier's own to write" if name.lower() in ours else None


def value_fault(name: str, value: str) -> str | None:
    """Why a value cannot be sent; it is not shown."""
    if _UNFIT.search(value):
        return f"the value of the header {name} holds a line break or a control character"
    return None


def call_fault(headers: Mapping[Any, Any]) -> str | None:
    """Why these headers may not go along with a call; None where they may."""
    seen: set[str] = set()
    for name, value in headers.items():
        fault = name_fault(name, _OURS)
        if fault is not None:
            return fault
        if name.lower().startswith("mcp-"):
            return f"the header {name} is the protocol's own"
        if name.lower() in seen:
            return f"the header {name} is given twice"
        seen.add(name.lower())
        if not isinstance(value, Secret):
            return f"the value of the header {name} is not text"
        if not value.reveal().strip():
            return f"the value of the header {name} is empty"
        fault = value_fault(name, value.reveal())
        if fault is not None:
            return fault
    return None
