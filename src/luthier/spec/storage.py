"""The `config` of a `storage` step: what is kept where (`type`), what is done (`action`), and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from luthier.expr import compile_value
from luthier.expr.scan import has_expression
from luthier.spec.ensemble import StorageConfig
from luthier.spec.expressions import noted
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from luthier.spec.draft import Draft
    from luthier.spec.reader import Found, Reader

ACTIONS: dict[str, dict[str, str]] = {
    "kv": {name: name for name in ("get", "put", "delete", "list")},
    "files": {
        **{name: name for name in ("read", "write", "append", "delete", "list", "exists")},
        "get": "read",
        "put": "write",
        "head": "exists",
    },
}
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "kv": {
        "key": ("key",),
        "value": ("value",),
        "ttl": ("ttl", "expiration_ttl"),
        "expiration": ("expiration",),
        "metadata": ("metadata",),
        "prefix": ("prefix",),
        "limit": ("limit",),
        "cursor": ("cursor",),
    },
    "files": {
        "path": ("path", "key"),
        "content": ("content", "value", "body"),
        "encoding": ("encoding",),
        "prefix": ("prefix",),
        "limit": ("limit",),
        "cursor": ("cursor",),
    },
}
"""The tool's names for what a step gives, and the spellings of each."""

_PAGE = ("prefix", "limit", "cursor")
_KEEPS = ("ttl", "expiration", "metadata")
TAKES: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("kv", "get"): (("key",), ()),
    ("kv", "put"): (("key", "value"), _KEEPS),
    ("kv", "delete"): (("key",), ()),
    ("kv", "list"): ((), _PAGE),
    ("files", "read"): (("path",), ("encoding",)),
    ("files", "write"): (("path", "content"), ("encoding",)),
    ("files", "append"): (("path", "content"), ("encoding",)),
    ("files", "delete"): (("path",), ()),
    ("files", "list"): ((), _PAGE),
    ("files", "exists"): (("path",), ()),
}
"""What each action needs, and what it may have besides."""

_ELSEWHERE = {"r2": "write files", "cache": "write kv with a ttl", "d1": "", "vectorize": ""}
_TEXTS = ("key", "path", "prefix", "content", "encoding", "cursor")
NUMBERS = ("ttl", "expiration", "limit")


def read_storage(reader: Reader, draft: Draft) -> StorageConfig | None:
    """Read it all, noting expressions in the draft; None, and faults, where something is missing."""
    before = len(reader.sink.faults)
    type_ = _type(reader)
    action = _action(reader, type_) if type_ else None
    if type_ is None or action is None:
        return None  # what belongs here depends on both
    needed, more = TAKES[type_, action]
    written: dict[str, Any] = {}
    for name in (*needed, *more):
        names = NAMES[type_][name]
        found = reader.raw(*names) if name == "value" else reader.take(*names, required=name in needed)
        if found is None:
            if name == "value":
                reader.sink.add("`value` is missing", reader.path)
            continue
        written[name] = found.value
        noted(reader.sink, draft, name, found)
        _check(reader, name, found)
    if "ttl" in written and "expiration" in written:
        message = "`expiration` and `ttl` say the same: write only one of them"
        reader.sink.add(message, reader.places["expiration"], key=True)
    _refuse_others(reader, type_, action, (*needed, *more))
    reader.done({"binding": "there is one store for each project"})
    if len(reader.sink.faults) > before:
        return None
    arguments = compile_value({"action": action, **written})
    return StorageConfig(type=cast("Literal['kv', 'files']", type_), action=action, arguments=arguments)


def _type(reader: Reader) -> str | None:
    found = reader.take("type", "backend", required=True)
    if found is None:
        return None
    if not isinstance(found.value, str):
        reader.sink.wrong("text", *found)
        return None
    if found.value in ACTIONS:
        return found.value
    has = _ELSEWHERE.get(found.value) or f"there are {listed(ACTIONS)}"
    message = f"there is no storage {quoted(found.value)}"
    reader.sink.add(message, found.path, suggestion=meant(found.value, ACTIONS, otherwise=has))
    return None


def _action(reader: Reader, type_: str) -> str | None:
    if reader.take("action", "operation", required=True) is None:
        return None
    return reader.choice(ACTIONS[type_], "action", "operation")


def _check(reader: Reader, name: str, found: Found) -> None:
    """What holds no expression can be judged now."""
    value = found.value
    if isinstance(value, str) and has_expression(value):
        return
    if name in _TEXTS and not isinstance(value, str):
        reader.sink.wrong("text", *found)
    elif name in NUMBERS and (not isinstance(value, (int, float)) or isinstance(value, bool)):
        reader.sink.wrong("a number", *found)
    elif name in ("ttl", "limit") and value <= 0:
        reader.sink.add(f"{quoted(name)} must be more than 0, not {value}", found.path)
    elif name == "encoding" and value not in ("text", "base64"):
        message = f"`encoding` must be one of text, base64, not {quoted(value)}"
        reader.sink.add(message, found.path, suggestion=meant(value, ("text", "base64")))


def _refuse_others(reader: Reader, type_: str, action: str, taken: tuple[str, ...]) -> None:
    """What another action takes is known here, and said to be out of place."""
    spellings = {spelling for name in taken for spelling in NAMES[type_][name]}
    for names in NAMES[type_].values():
        for name in names:
            if name not in spellings and (found := reader.raw(name)):
                message = f"{quoted(name)} says nothing to {quoted(action)}"
                reader.sink.add(message, found.path, key=True)
