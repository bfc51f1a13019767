"""Traffic with servers as a file: JSON lines that say what tools are, what they were asked and answered.

    {"traffic": 1}
    {"tool": "mcp://github/get_issue", "definition": {…}}
    {"call": "mcp://github/get_issue", "arguments": {…}, "result": {…}}
    {"call": "mcp://github/get_issue", "arguments": {…}, "error": {"kind": "timeout", "message": "…"}}

Secrets are blotted out of all of it, and of what is looked up in it, so that a call that carried one is
found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.connect.state import value_text
from luthier.errors import Fault, LuthierError, SpecError
from luthier.given import RepeatedNameError, given_json
from luthier.redaction import redact_value
from luthier.spec.places import reading
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.tools import Tool

VERSION = 1
LARGEST = 256 * 1024 * 1024
"""Bytes of a recording that is read."""

_HEAD = b'{"traffic":'


class Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of the file; which fields it has says what it is."""

    traffic: int = 0
    tool: str = ""
    definition: dict[str, Any] | None = None
    call: str = ""
    arguments: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class TrafficWriter:
    """Writes a new file, readable by its owner only; every line is on its way when the method returns.

    It takes the place of an older recording, never of another file. Raises SpecError. Where the file takes no
    more, what is recorded goes on without it, and closing says so.
    """

    def __init__(self, path: Path) -> None:
        try:
            if path.is_file() and not _is_recording(path):
                message = "this is no recording, so it is not overwritten"
                raise SpecError([Fault(message, file=str(path), suggestion="name another file")])
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise _unusable(path, "written", error) from None
        self._path = path
        self._file = os.fdopen(descriptor, "wb")
        self._failure: OSError | None = None
        self._defined: set[ToolUri] = set()
        self._write(Line(traffic=VERSION))

    def define(self, tool: Tool) -> None:
        """What the server says of a tool, once."""
        if tool.uri not in self._defined:
            self._defined.add(tool.uri)
            definition = tool.raw or {"name": tool.name, "inputSchema": tool.input_schema}
            self._write(Line(tool=str(tool.uri), definition=redact_value(definition)))

    def answered(self, uri: ToolUri, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        """A call, and the result that it had."""
        self._write(Line(call=str(uri), arguments=redact_value(arguments), result=redact_value(result)))

    def failed(self, uri: ToolUri, arguments: dict[str, Any], error: dict[str, Any]) -> None:
        """A call whose answer was never had, and why."""
        self._write(Line(call=str(uri), arguments=redact_value(arguments), error=redact_value(error)))

    def close(self) -> None:
        """Raises LuthierError where not all of it is in the file."""
        try:
            self._file.close()
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is not None:
            message = f"The recording {self._path} is not whole: {self._failure.strerror}."
            raise LuthierError(message, hint="The run itself is over: luthier runs list")

    def _write(self, line: Line) -> None:
        if self._failure is not None:
            return
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            self._failure = error


class Exchange(msgspec.Struct, frozen=True):
    """One call that was recorded; `error` where it had no result."""

    arguments: dict[str, Any]
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    def matches(self, arguments: dict[str, Any]) -> bool:
        """Whether these are its arguments, secrets aside."""
        return value_text(redact_value(arguments)) == value_text(self.arguments)


class Traffic(msgspec.Struct, frozen=True):
    """A recording: definitions by server and tool, exchanges by tool in the order in which they ended."""

    definitions: dict[str, dict[str, dict[str, Any]]]
    exchanges: dict[ToolUri, list[Exchange]]


def read_traffic(path: Path) -> Traffic:
    """The recording in a file. Raises SpecError that names the line."""
    definitions: dict[str, dict[str, dict[str, Any]]] = {}
    exchanges: dict[ToolUri, list[Exchange]] = {}
    try:
        with reading(path) as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise _unusable(path, "read", error) from None
    if len(data) > LARGEST:
        raise SpecError([Fault(f"the file is larger than {LARGEST // 1024 // 1024} MiB", file=str(path))])
    lines = data.splitlines()
    if not lines or _line(path, 1, lines[0]).traffic != VERSION:
        message = (
            f'this is no recording that this version reads: its first line is not {{"traffic": {VERSION}}}'
        )
        raise SpecError([Fault(message, file=str(path), line=1, column=1)])
    for number, text in enumerate(lines[1:], 2):
        line = _line(path, number, text)
        uri = _uri(path, number, line.tool or line.call)
        if line.definition is not None:
            definitions.setdefault(uri.server, {})[uri.name] = line.definition
        else:
            exchange = Exchange(line.arguments or {}, line.result, line.error)
            exchanges.setdefault(uri, []).append(exchange)
            definitions.setdefault(uri.server, {}).setdefault(uri.name, {})
    return Traffic(definitions, exchanges)


def _is_recording(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_HEAD)) in {b"", _HEAD}


def _unusable(path: Path, how: str, error: OSError) -> SpecError:
    return SpecError([Fault(f"the file cannot be {how}: {error.strerror}", file=str(path))])


def _line(path: Path, number: int, text: bytes) -> Line:
    try:
        return given_json(text, Line)
    except RepeatedNameError as error:
        raise SpecError([Fault(error.fact, file=str(path), line=number, column=error.column)]) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise SpecError(
            [Fault(f"this is no line of a recording: {error}", file=str(path), line=number)]
        ) from None


def _uri(path: Path, number: int, text: str) -> ToolUri:
    try:
        uri = ToolUri.parse(text)
    except ValueError as error:
        raise SpecError([Fault(str(error), file=str(path), line=number)]) from None
    if uri.scheme != "mcp":
        raise SpecError([Fault(f"{text} is no tool of a server", file=str(path), line=number)])
    return uri
