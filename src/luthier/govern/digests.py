"""How the log tells of values without telling them: hashes and sizes, names and labels."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.govern.records import Tag
from luthier.redaction import redact_value
from luthier.taint import TRUSTED, Confidentiality

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec import Policies
    from luthier.taint import Label
    from luthier.tools import Reply, Tool

NAMES = 64
"""Names of arguments in a record; further ones are left out."""

LONGEST_TEXT = 16 * 1024
"""Characters of arguments or of a result in a record, where they are kept at all."""

LONGEST_NAME = 128
"""Characters of a name in a record; the rest is cut off."""

SOURCES = 32
"""Sources of a label in a record; of further ones only the number."""

_sha256 = hashlib.sha256
_encode = msgspec.json.Encoder().encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode
_INTEGRITY = ("trusted", "untrusted")
_CONFIDENTIALITY = ("public", "private", "secret")
_PLAIN = {
    (integrity, confidentiality): Tag(_INTEGRITY[integrity], _CONFIDENTIALITY[confidentiality])
    for integrity in range(len(_INTEGRITY))
    for confidentiality in range(len(_CONFIDENTIALITY))
}


def arguments_digest(arguments: Any) -> str:
    """SHA-256 of the arguments' JSON text, keys in order; empty where they have none."""
    try:
        return _sha256(_encode_in_order(arguments)).hexdigest()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return ""


def policies_digest(policies: Policies, checks: Iterable[object] = ()) -> str:
    """SHA-256 of the rules, wherever they are written, and of the names of the functions that judge too."""
    rules = [msgspec.structs.replace(rule, place="") for rule in policies.rules]
    names = [f"{check.__module__}.{getattr(check, '__qualname__', type(check).__name__)}" for check in checks]
    return _sha256(_encode_in_order([policies.default, rules, names])).hexdigest()


def pins_digest(tools: Iterable[Tool]) -> str:
    """SHA-256 of what a server lists: a line `NAME HASH` for each tool, in the order of the names."""
    lines = sorted(f"{tool.name} {tool.digest}\n" for tool in tools)
    return _sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def reply_digest(reply: Reply) -> tuple[str, int]:
    """SHA-256 and length of a reply's JSON text."""
    value = (reply.blocks, None if reply.structured is msgspec.UNSET else reply.structured)
    try:
        text = _encode(value)
    except (
        TypeError,
        ValueError,
        OverflowError,
    ):  # what only the lenient reader takes
        text = json.dumps(value, default=repr).encode()
    return _sha256(text).hexdigest(), len(text)


def kept_text(value: Any, label: Label) -> str:
    """A value for the log, redacted, as JSON text; cut off at LONGEST_TEXT, and nothing of a secret one."""
    if label.confidentiality is Confidentiality.secret:
        return "(labelled secret)"
    try:
        text = _encode(redact_value(value)).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "(cannot be written as JSON)"
    return (
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… and {len(text) - LONGEST_TEXT} more"
    )


def names_of(arguments: Any) -> tuple[str, ...]:
    """The names of the top level."""
    if not isinstance(arguments, dict):
        return ()
    names = tuple(map(str, arguments))
    if len(names) <= NAMES and len("".join(names)) <= LONGEST_NAME:
        return names
    return tuple(name[:LONGEST_NAME] for name in names[:NAMES])


def tag_of(label: Label, own: str = "") -> Tag | None:
    """The label for a record; None for a trusted and public value. `own` is the call whose record it is."""
    if label is TRUSTED:
        return None
    named = [
        f"{source.server}/{source.tool}#{source.call_id}"
        for source in label.sources
        if not own or source.call_id != own  # the record says already which call it is about
    ]
    if not named:
        return _PLAIN[label.integrity, label.confidentiality]
    named.sort()
    if len(named) > SOURCES:
        named[SOURCES:] = [f"and {len(named) - SOURCES} more"]
    return Tag(_INTEGRITY[label.integrity], _CONFIDENTIALITY[label.confidentiality], tuple(named))
