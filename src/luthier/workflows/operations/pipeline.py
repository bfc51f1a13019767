"""The pipeline of a `transform`: rows or one mapping, reshaped in a fixed order. Pure.

    parse → filter → trim → compact → coerce → defaults → rename → pick → omit
          → dedupe → sort → offset → limit → format

Rows that are no mappings go through: they have no fields. What is neither rows nor a mapping is only
formatted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from luthier.expr.numbers import canonical, read_number
from luthier.workflows.operations.tables import formatted, parsed
from luthier.workflows.operations.texts import json_text, spelled

if TYPE_CHECKING:
    from luthier.spec import Sort, TransformConfig


def reshaped(value: Any, config: TransformConfig, defaults: dict[str, Any]) -> Any:
    """The value after every stage that the config asks for; what it was made of is not changed."""
    if config.parse is not None:
        value = parsed(value, config.parse)
    if isinstance(value, list):
        value = _rows(value, config, defaults)
    elif isinstance(value, dict):
        value = _fields(value, config, defaults)
    if config.format is None:
        return value
    return formatted(value if isinstance(value, list) else [value], config.format, config.columns)


def _rows(rows: list[Any], config: TransformConfig, defaults: dict[str, Any]) -> list[Any]:
    if config.filter is not None:
        rows = [row for row in rows if isinstance(row, dict) and _is_true(row.get(config.filter))]
    if config.compact:
        rows = [row for row in rows if row is not None]
    rows = [_fields(row, config, defaults) if isinstance(row, dict) else _bare(row, config) for row in rows]
    if config.dedupe:
        rows = _deduped(rows, config.dedupe)
    if config.sort is not None:
        rows = _sorted(rows, config.sort)
    end = None if config.limit is None else config.offset + config.limit
    return rows[config.offset : end]


def _bare(row: Any, config: TransformConfig) -> Any:
    return row.strip() if config.trim and isinstance(row, str) else row


def _fields(row: dict[str, Any], config: TransformConfig, defaults: dict[str, Any]) -> dict[str, Any]:
    if config.trim:
        row = {key: value.strip() if isinstance(value, str) else value for key, value in row.items()}
    if config.compact:
        row = {key: value for key, value in row.items() if value is not None}
    if config.coerce:
        row = {key: _coerced(value, config.coerce.get(key)) for key, value in row.items()}
    row = {**defaults, **row}
    if config.rename:
        row = {config.rename.get(key, key): value for key, value in row.items()}
    if config.pick:
        row = {key: row[key] for key in config.pick if key in row}
    return {key: value for key, value in row.items() if key not in config.omit}


def _coerced(value: Any, wanted: str | None) -> Any:
    if value is None:
        return None
    match wanted:
        case "string":
            return spelled(value)
        case "number":
            return _number(value)
        case "boolean":
            return value.lower() in ("true", "1", "yes") if isinstance(value, str) else _is_true(value)
        case "date":
            return _date(value)
        case _:
            return value


def _number(value: Any) -> Any:
    """The number that a text or boolean reads as; null where it reads as none."""
    match value:
        case bool():
            return int(value)
        case int() | float():
            return value
        case str() if value.strip():
            return canonical(read_number(value))
        case _:
            return None


def _date(value: Any) -> str | None:
    """The moment as `YYYY-MM-DDTHH:MM:SS.mmmZ`, from such text or milliseconds; null where it is none."""
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            moment = datetime.fromtimestamp(value / 1000, UTC)
        else:
            moment = datetime.fromisoformat(value.strip())
    except (ValueError, OverflowError, OSError, AttributeError):
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _deduped(rows: list[Any], by: bool | str) -> list[Any]:  # noqa: FBT001  (`true` or a field, as it is written)
    """The first row of each kind: all alike, or alike in the field."""
    seen: set[str] = set()
    kept = []
    for row in rows:
        value = row.get(by) if isinstance(by, str) and isinstance(row, dict) else row
        key = _identity(value)
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return kept


def _identity(value: Any) -> str:
    """The same for equal values and only for them: true is not 1, 1.0 is."""
    match value:
        case dict():
            return "{" + ",".join(f"{json_text(key)}:{_identity(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(_identity, value)) + "]"
        case str():
            return json_text(value)
        case _:
            return spelled(value)


def _sorted(rows: list[Any], sort: Sort) -> list[Any]:
    """By the field, equals in the order they came: numbers, then text whatever its case, then none."""
    keyed = [(_rank(row.get(sort.by) if isinstance(row, dict) else None), row) for row in rows]
    there = [pair for pair in keyed if pair[0] is not None]
    there.sort(key=lambda pair: pair[0] or (), reverse=sort.descending)
    return [row for _, row in there] + [row for rank, row in keyed if rank is None]


def _rank(value: Any) -> tuple[int, float, str, str] | None:
    match value:
        case None:
            return None
        case int() | float():
            return (0, value, "", "")
        case _:
            text = spelled(value)
            return (1, 0, text.casefold(), text.swapcase())


def _is_true(value: Any) -> bool:
    """As in expressions: empty text, 0, false and null are not."""
    return isinstance(value, list | dict) or bool(value)
