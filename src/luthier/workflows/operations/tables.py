"""Tables as text: csv, tsv and JSON lines, read into rows and written from them."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import msgspec

from luthier.errors import StepError
from luthier.workflows.operations.texts import a_kind, json_text, spelled

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?", re.ASCII)
_WORDS = {"true": True, "TRUE": True, "false": False, "FALSE": False, "": None}


def parsed(text: Any, form: str) -> list[Any]:
    """The rows of a text. Raises StepError with the row or line at fault.

    In csv and tsv the first row names the fields. A cell is a number or a boolean where it reads as one and
    would be written the same way (`007` and `1e3` are text); an empty one is null.
    """
    if not isinstance(text, str):
        raise StepError("code", f"{form} is read from text, not from {a_kind(text)}")
    text = text.removeprefix("\ufeff")
    return _json_lines(text) if form == "jsonl" else _rows(text, form)


def formatted(rows: list[Any], form: str, columns: tuple[str, ...] = ()) -> str:
    """The text of rows, no newline at its end. Raises StepError where a csv or tsv row is no mapping."""
    if form == "jsonl":
        return "\n".join(map(json_text, rows))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise StepError("code", f"{form} is made of mappings; row {number} is {a_kind(row)}")
    fields = columns or tuple(dict.fromkeys(field for row in rows for field in row))
    if not rows or not fields:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=_DELIMITERS[form], lineterminator="\r\n")
    writer.writerow(fields)
    writer.writerows([_written(row.get(field)) for field in fields] for row in rows)
    return out.getvalue().removesuffix("\r\n")


def _rows(text: str, form: str) -> list[dict[str, Any]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_DELIMITERS[form], strict=True)
    try:
        lines = [line for line in reader if line and any(line)]
    except csv.Error as error:
        raise StepError("code", f"this is not {form}: line {reader.line_num}: {error}") from error
    if not lines:
        return []
    fields, *rows = lines
    for number, row in enumerate(rows, 1):
        if len(row) != len(fields):
            message = f"{form} row {number} has {len(row)} cells, the header has {len(fields)}"
            raise StepError("code", message)
    return [dict(zip(fields, map(_cell, row), strict=True)) for row in rows]


def _cell(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) and text != "-0":
        return float(text) if "." in text else int(text)
    return text


def _written(value: Any) -> str:
    return "" if value is None else spelled(value)


def _json_lines(text: str) -> list[Any]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise StepError("code", f"line {number} is not JSON: {error}") from error
    return rows
