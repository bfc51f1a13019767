"""The variables of hosts' files, written as our own references or, where only the host knows them, refused.

`${env:X}`, `${X}` and `${X:-d}` are references to the environment. `${input:x}` is a question that the host
would ask a person: it becomes a variable `INPUT_X`. Folders of the host's workspace are written out.
Everything else that looks like one of our references and is none is kept as the text that it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE = re.compile(r"\$\{(?P<inner>[^{}]*)\}")
_BARE = re.compile(r"\$\{(?P<inner>[^{}]*)\}|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)")
_ENV = re.compile(r"(?:env[:.])?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^{}]*)?", re.DOTALL)
_WORKSPACE = frozenset({"workspaceFolder", "workspaceRoot", "cwd"})
_OF_EDITORS = frozenset(
    {
        *(
            "file",
            "fileBasename",
            "fileBasenameNoExtension",
            "fileDirname",
            "fileDirnameBasename",
            "fileExtname",
        ),
        *("fileWorkspaceFolder", "relativeFile", "relativeFileDirname", "lineNumber", "columnNumber"),
        *("selectedText", "execPath", "defaultBuildTask"),
    }
)
_REFUSED = {
    "command": "the host would run one of its own commands for it",
    "config": "only the host knows its settings",
}


class Question(msgspec.Struct, frozen=True):
    """An input that a host asks a person for: what it says about it, and what it takes without an answer."""

    description: str = ""
    default: str | None = None
    secret: bool = False
    fault: str = ""  # why nobody but the host can answer


class Surroundings(msgspec.Struct, frozen=True):
    """What variables stand for. `workspace` is the folder that the host would have open; None: not known.

    `bare`: `$X` is a variable too.
    """

    workspace: Path | None = None
    questions: dict[str, Question] = {}
    bare: bool = False


class VariableFault(Exception):
    """A variable that cannot be written as a reference."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def rewritten(text: str, around: Surroundings) -> str:
    """The text with its variables as our references. Raises VariableFault."""
    parts: list[str] = []
    for piece, is_reference in _pieces(text, around):
        if is_reference and parts and parts[-1].endswith("$"):
            raise VariableFault("a `$` stands before a variable", "there is no way to write this here")
        parts.append(piece if is_reference else piece.replace("${", "$${"))
    return "".join(parts)


def variable_of(name: str) -> str:
    """The variable for the question that a host asks under that name."""
    return "INPUT_" + re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()


def questions_in(text: str) -> tuple[str, ...]:
    """The names of the questions that a text refers to."""
    inner = (found["inner"] for found in _VARIABLE.finditer(text))
    return tuple(one.removeprefix("input:") for one in inner if one.startswith("input:"))


def _pieces(text: str, around: Surroundings) -> Iterator[tuple[str, bool]]:
    """Plain text and references in their order."""
    end, plain = 0, ""
    for found in (_BARE if around.bare else _VARIABLE).finditer(text):
        plain += text[end : found.start()]
        end = found.end()
        inner = found["inner"]
        written = f"${{{found['bare']}}}" if inner is None else _written(inner, around)
        if written.startswith("${"):
            yield plain, False
            yield written, True
            plain = ""
        else:
            plain += written
    yield plain + text[end:], False


def _written(inner: str, around: Surroundings) -> str:
    """What stands for `${inner}`: a reference, or the text itself where it is known."""
    kind, colon, rest = inner.partition(":")
    if kind == "input" and colon:
        return _asked(rest, around)
    if inner in _WORKSPACE or inner == "workspaceFolderBasename":
        if around.workspace is None:
            raise VariableFault(f"`${{{inner}}}` is not known here", "name the folder: --workspace DIR")
        return str(around.workspace) if inner in _WORKSPACE else around.workspace.name
    if inner == "userHome":
        return "${HOME}"
    if inner in ("pathSeparator", "/"):
        return "/"
    if inner not in _OF_EDITORS and (found := _ENV.fullmatch(inner)):
        return f"${{{found['name']}{found['default'] or ''}}}"
    why = _REFUSED.get(kind, "it is no variable that can be read here")
    raise VariableFault(f"{quoted(f'${{{inner}}}')} cannot be kept: {why}", "write the value or ${NAME}")


def _asked(name: str, around: Surroundings) -> str:
    question = around.questions.get(name)
    if question is None:
        raise VariableFault(f"there is no input {quoted(name)}", "the file declares inputs under `inputs`")
    if question.fault:
        raise VariableFault(f"the input {quoted(name)} cannot be kept: {question.fault}")
    default = question.default
    if default is None or question.secret or "}" in default or "${" in default:
        return f"${{{variable_of(name)}}}"
    return f"${{{variable_of(name)}:-{default}}}"
