"""`builtin://storage/files`: files in one folder of the project, with the labels of those written here.

A label is kept with the digest of what was written: who changes a file outside makes it a stranger's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Any

from luthier.errors import StepError
from luthier.outside.jail import LONGEST, Jail
from luthier.outside.keeping import Keeper, keeping_tool, kept_label, label_to_keep, page, sound
from luthier.taint import TRUSTED, UNTRUSTED, Label, join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from luthier.connect import StateStore
    from luthier.tools import ToolCall

LARGEST_FILE = 10 * 1024 * 1024
FILE_ACTIONS = ("read", "write", "append", "delete", "list", "exists")

_TOOL = keeping_tool(
    "files",
    "Read, write, append to, delete, list or look for files that the project keeps.",
    FILE_ACTIONS,
    {
        "path": {"type": "string", "minLength": 1, "maxLength": LONGEST},
        "content": {"type": "string"},
        "encoding": {"enum": ["text", "base64"]},
    },
    idempotent=False,
)


class FilesTool(Keeper):
    """The files below `root`, which is made when it is needed; `state` keeps their labels."""

    tool = _TOOL

    def __init__(self, root: Path, state: Callable[[], StateStore], namespace: str) -> None:
        self._root = root
        self._state = state
        self._kind = f"files:{namespace}"

    def done(self, call: ToolCall) -> tuple[dict[str, Any], Label]:
        arguments = sound(call)
        action = arguments["action"]
        with self._jail() as jail:
            if action == "list":
                return self._list(jail, arguments)
            if "path" not in arguments:
                raise StepError("arguments", f"{call.uri} needs a path for {action!r}.")
            if action in ("read", "exists"):
                return self._look(jail, arguments["path"], arguments)
            jail.lock()
            if action == "delete":
                return self._delete(jail, arguments["path"])
            return self._put(jail, call, after=action == "append")

    def _jail(self) -> Jail:
        try:
            return Jail(self._root)
        except OSError as error:
            message = f"The folder of stored files cannot be used: {error.strerror or error}."
            raise StepError("code", message, hint=f"It must be a folder, and no link: {self._root}") from None

    def _look(self, jail: Jail, path: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Label]:
        data = jail.read(path, LARGEST_FILE)
        label = self._label(path, data)
        if arguments["action"] == "exists":
            return {"path": path, "found": data is not None, "size": _size(data)}, label
        content, encoding = _shown(data, arguments.get("encoding") or "text")
        told = {"path": path, "found": data is not None, "content": content, "encoding": encoding}
        return {**told, "size": _size(data)}, label

    def _put(self, jail: Jail, call: ToolCall, *, after: bool) -> tuple[dict[str, Any], Label]:
        path = call.arguments.value["path"]
        label, data = label_to_keep(call), _given(call)
        known = TRUSTED
        if after and (before := jail.read(path, LARGEST_FILE)) is not None:
            known = self._label(path, before)
            data = before + data
        if len(data) > LARGEST_FILE:
            message = f"{path!r} would have {len(data):,} bytes: {LARGEST_FILE:,} can be kept."
            raise StepError("arguments", message)
        jail.write(path, data)
        kept = {"label": label.join(known).to_json(), "digest": _digest(data)}
        self._state().put(self._kind, path, kept)
        return {"path": path, "success": True, "size": len(data)}, known

    def _delete(self, jail: Jail, path: str) -> tuple[dict[str, Any], Label]:
        found = jail.delete(path)
        label = kept_label(self._state().get(self._kind, path)).join(UNTRUSTED)
        self._state().delete(self._kind, path)
        return {"path": path, "success": True, "found": found}, label

    def _list(self, jail: Jail, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Label]:
        sizes = dict(jail.files(arguments.get("prefix") or ""))
        names, cursor = page(sizes, arguments)
        records = self._state().list(self._kind)
        files = [{"path": name, "size": sizes[name]} for name in names]
        label = join(kept_label(records.get(name)) for name in names).join(UNTRUSTED)
        return {"files": files, "list_complete": cursor is None, "cursor": cursor}, label

    def _label(self, path: str, data: bytes | None) -> Label:
        """The label of a file as it is now: the kept one, and a stranger's unless it is as we left it."""
        record = self._state().get(self._kind, path)
        label = kept_label(record)
        ours = record is not None and data is not None and record.get("digest") == _digest(data)
        return label if ours else label.join(UNTRUSTED)


def _given(call: ToolCall) -> bytes:
    arguments = call.arguments.value
    content = arguments.get("content")
    if content is None:
        raise StepError("arguments", f"{call.uri} needs content for {arguments['action']!r}.")
    if arguments.get("encoding") != "base64":
        return str(content).encode(errors="replace")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise StepError("arguments", "The content is not base64.") from None


def _shown(data: bytes | None, encoding: str) -> tuple[str | None, str]:
    """A file as text, or as base64 where that is wanted or it is no text."""
    if data is None:
        return None, encoding
    if encoding == "text":
        try:
            return data.decode(), "text"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(data).decode(), "base64"


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
