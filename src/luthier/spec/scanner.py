"""The lexing step before YAML: a bare `${…}` or `{{…}}` in block style is read to its close, as if quoted.

YAML takes `${a ? 'x' : 'y'}` for the start of a mapping and `{{a}}` for a flow mapping. Here a plain scalar
outside `[…]` and `{…}` that begins with an expression keeps whatever stands inside its expressions, as long
as they close on their own line. Everything else is YAML 1.2, read by ruamel's scanner, whose marks stay true.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml.scanner import Scanner
from ruamel.yaml.tokens import ScalarToken

from luthier.expr import scan_close

_OPENINGS = ("${", "{{")
_AFTER_KEY = "\0 \t\r\n,[]{}"
_LINE_ENDS = "\0\r\n"


class ExpressionScanner(Scanner):
    """ruamel's scanner with expressions as scalars."""

    def fetch_flow_mapping_start(self) -> None:
        if self._begins_expression():
            self.fetch_plain()
        else:
            super().fetch_flow_mapping_start()

    def check_key(self) -> Any:
        # In `{?a: 1}` the question mark belongs to the key; ruamel would drop it. So it is refused instead.
        if self.flow_level and self.reader.peek(1) not in _AFTER_KEY:
            return False
        return super().check_key()

    def scan_plain(self) -> Any:
        if not self._begins_expression():
            return super().scan_plain()
        reader, indent = self.reader, self.indent + 1
        start = end = reader.get_mark()
        chunks: list[str] = []
        blanks: list[str] = []
        while length := extent(line := self._line()):
            self.allow_simple_key = False
            chunks += [*blanks, line[:length]]
            reader.forward(length)
            end = reader.get_mark()
            blanks = self.scan_plain_spaces(indent, start)
            if not blanks or reader.peek() == "#" or reader.column < indent:
                break
        return ScalarToken("".join(chunks), True, start, end)  # noqa: FBT003  (ruamel's own signature)

    def _begins_expression(self) -> bool:
        if self.flow_level or self.reader.prefix(2) not in _OPENINGS:
            return False
        return scan_close(self._line(), len("${")) >= 0

    def _line(self) -> str:
        """What is left of the line, without its end."""
        buffer, position = self.reader.buffer, self.reader.pointer
        while buffer[position] not in _LINE_ENDS:
            position += 1
        return str(buffer[self.reader.pointer : position])


def extent(line: str) -> int:
    """How much of a line belongs to the plain scalar that begins it: up to a bare `: ` or ` #`."""
    position = end = 0
    looking = True
    while position < len(line):
        character = line[position]
        if character in " \t":
            position += 1
            if line.startswith("#", position):
                break
            continue
        if character == ":" and line[position + 1 : position + 2] in ("", " ", "\t"):
            break
        if looking and line.startswith(_OPENINGS, position):
            close = scan_close(line, position + 2)
            if close >= 0:
                position = end = close + (1 if character == "$" else 2)
                continue
            looking = (
                False  # nothing behind an expression that never closes is sought again: linear in the line
            )
        position = end = position + 1
    return end
