"""What people see: faults, errors, results and tables. Everything that came from a server is escaped."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from luthier import errors
from luthier.cli.streams import give_up, reason
from luthier.redaction import redact, redact_value
from luthier.text import escape, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def echo(text: str, stream: TextIO | None = None) -> None:
    """Print to stdout, or redacted to the stream, with `?` for what its encoding lacks.

    A reader that went away ends the printing, not the program. Raises OutputError when stdout takes no more;
    where stderr takes no more there is nobody to tell.
    """
    target = stream or sys.stdout
    if target is not sys.stdout:  # stdout is for results, which are never altered
        text = redact(text)
    encoding = target.encoding or "utf-8"
    try:
        target.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        target.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):  # it has no number
            give_up(target.fileno())
        if target is sys.stdout and not isinstance(error, BrokenPipeError):
            raise OutputError(f"the result cannot be written to stdout: {reason(error)}") from None


class OutputError(errors.LuthierError):
    """The result is there, and nobody can be given it."""


def to_json(value: Any) -> str:
    """Two-space JSON; control characters are escaped by JSON itself, other steering ones by us."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    return escape(text)


def show_value(value: Any) -> None:
    """A result for people: text as text, everything else as JSON."""
    echo(escape(value) if isinstance(value, str) else to_json(value))


def error_document(error: errors.LuthierError) -> dict[str, Any]:
    """An error as a JSON document: kind, message, hint, facts, and the faults where there are several."""
    document: dict[str, Any] = {
        "kind": errors.kind_of(error),
        "message": error.message,
        "hint": error.hint,
        "facts": error.facts(),
    }
    if isinstance(error, errors.FaultsError):
        document["faults"] = [msgspec.to_builtins(fault) for fault in error.faults]
    shown: dict[str, Any] = redact_value({"error": document})
    return shown


def show_error(error: errors.LuthierError) -> None:
    """One error on stderr: its faults with their places, or what happened and what to do next."""
    if isinstance(error, errors.FaultsError):
        show_faults(error.faults)
        return
    lines = [f"{paint('error', 'bold red')}: {escape(error.message)}"]
    if error.hint:
        lines.append(f"  {escape(error.hint)}")
    if isinstance(error, errors.Refused) and (error.rule or error.place):
        lines.append(f"  {escape(' '.join(filter(None, (error.rule, error.place))))}")
    tail = getattr(error, "stderr_tail", "")
    if tail:
        lines.append("  the server's last words:")
        lines.extend(f"    {escape(line)}" for line in tail.rstrip().splitlines()[-12:])
    echo("\n".join(lines), sys.stderr)


def show_faults(faults: Sequence[errors.Fault]) -> None:
    """Every fault as `file:line:column: message`, with its suggestion and excerpt, on stderr."""
    for fault in faults:
        word = paint("warning", "yellow") if fault.warning else paint("error", "bold red")
        place = f"{one_line(fault.place, limit=500)}: " if fault.place else ""
        suggestion = f" ({escape(fault.suggestion)})" if fault.suggestion else ""
        echo(f"{place}{word}: {escape(fault.message)}{suggestion}", sys.stderr)
        if fault.excerpt:
            echo("\n".join(f"    {escape(line)}" for line in fault.excerpt.splitlines()), sys.stderr)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on a terminal, tab-separated lines in a pipe."""
    cells = [[one_line(cell, limit=500) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def paint(text: str, style: str) -> str:
    """The text in colour where stderr is a terminal and NO_COLOR is not set."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        return text
    codes = {"bold red": "1;31", "yellow": "33", "green": "32", "dim": "2"}
    return f"\x1b[{codes[style]}m{text}\x1b[0m"
