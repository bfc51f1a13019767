"""Specs as plain values, so that two of them can be compared: expressions by their source."""

from __future__ import annotations

from typing import Any

import msgspec

from luthier.expr import Compiled

SKIPPED = {"origin", "warnings", "file", "reads_env"}


def plain(value: Any) -> Any:
    match value:
        case Compiled():
            return {"expression": value.source}
        case msgspec.Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in SKIPPED}
            return {"type": type(value).__name__} | {name: plain(item) for name, item in fields.items()}
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
