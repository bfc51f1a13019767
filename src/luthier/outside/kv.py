"""`builtin://storage/kv`: JSON values by key in the project's store, each with its label and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import StepError
from luthier.outside.keeping import Keeper, keeping_tool, kept_label, label_to_keep, page, sound
from luthier.taint import TRUSTED, UNTRUSTED, Label, join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from luthier.clock import Clock
    from luthier.connect import StateStore
    from luthier.tools import ToolCall

LARGEST_VALUE = 1024 * 1024
"""Bytes of a value as JSON."""

LONGEST_KEY = 512
KV_ACTIONS = ("get", "put", "delete", "list")

_KEY = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY}
_TOOL = keeping_tool(
    "kv",
    "Get, put, delete or list values that the project keeps by key.",
    KV_ACTIONS,
    {
        "key": _KEY,
        "value": {"description": "Any JSON value."},
        "metadata": {"description": "A JSON value that lists show beside the key."},
        "ttl": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds to keep it."},
        "expiration": {"type": "number", "description": "Until when to keep it, in Unix seconds."},
    },
    idempotent=True,
)


class KvTool(Keeper):
    """Values of one project, in a store that others may share; what has run out is as good as not there."""

    tool = _TOOL

    def __init__(self, state: Callable[[], StateStore], namespace: str, clock: Clock) -> None:
        self._state = state
        self._kind = f"kv:{namespace}"
        self._clock = clock

    def done(self, call: ToolCall) -> tuple[dict[str, Any], Label]:
        arguments = sound(call)
        if arguments["action"] == "list":
            return self._list(arguments)
        if "key" not in arguments:
            raise StepError("arguments", f"{call.uri} needs a key for {arguments['action']!r}.")
        match arguments["action"]:
            case "put":
                return self._put(call)
            case "delete":
                self._state().delete(self._kind, arguments["key"])
                return {"key": arguments["key"], "success": True}, TRUSTED
            case _:
                return self._get(arguments["key"])

    def _get(self, key: str) -> tuple[dict[str, Any], Label]:
        record = self._state().get(self._kind, key)
        if record is None or not self._is_live(record):
            if record is not None:  # nobody has put another there meanwhile
                self._state().swap(self._kind, key, record, None)
            return {"key": key, "value": None, "found": False, "metadata": None}, UNTRUSTED
        told = {"key": key, "value": record["value"], "found": True, "metadata": record.get("metadata")}
        return told, kept_label(record)

    def _put(self, call: ToolCall) -> tuple[dict[str, Any], Label]:
        arguments, key = call.arguments.value, call.arguments.value["key"]
        if "value" not in arguments:
            raise StepError("arguments", f"{call.uri} needs a value for 'put'.")
        label = label_to_keep(call)
        record = {name: arguments[name] for name in ("value", "metadata") if arguments.get(name) is not None}
        record = {"value": None, **record, "label": label.to_json()}
        size = len(msgspec.json.encode(record))
        if size > LARGEST_VALUE:
            message = f"The value for {key!r} has {size:,} bytes: {LARGEST_VALUE:,} can be kept."
            raise StepError("arguments", message, hint="Write it into a file: `type: files`.")
        if expires := self._expiry(arguments):
            record["expires"] = expires
        self._state().put(self._kind, key, record)
        return {"key": key, "success": True, "expiration": expires}, TRUSTED

    def _list(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Label]:
        records = {
            key: record for key, record in self._state().list(self._kind).items() if self._is_live(record)
        }
        names, cursor = page(records, arguments)
        keys = [
            {
                "name": name,
                "expiration": records[name].get("expires"),
                "metadata": records[name].get("metadata"),
            }
            for name in names
        ]
        # What is not there tells of whoever deleted it, or did not put it there.
        label = join(kept_label(records[name]) for name in names).join(UNTRUSTED)
        return {"keys": keys, "list_complete": cursor is None, "cursor": cursor}, label

    def _expiry(self, arguments: Mapping[str, Any]) -> float | None:
        ttl, expiration = arguments.get("ttl"), arguments.get("expiration")
        if ttl is not None and expiration is not None:
            raise StepError("arguments", "A value has either a `ttl` or an `expiration`.")
        if ttl is not None:
            return self._clock.now() + float(ttl)
        return None if expiration is None else float(expiration)

    def _is_live(self, record: Any) -> bool:
        return isinstance(record, dict) and record.get("expires", float("inf")) > self._clock.now()
