"""Prompts that clients may ask for: one file each, in the folder that `serve.prompts` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from luthier.errors import SpecError
from luthier.expr import Compiled
from luthier.spec.expressions import placed
from luthier.spec.load import files_in, load
from luthier.spec.read import in_order
from luthier.spec.reader import Found, Reader, Sink
from luthier.spec.resources import Variable
from luthier.spec.serve import NAME_RULE, TOOL_NAME
from luthier.spec.words import meant, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.errors import Fault
    from luthier.spec.origin import KeyPath
    from luthier.spec.project import Project

Role = Literal["user", "assistant"]


class Argument(Variable, frozen=True, kw_only=True):
    """What a prompt is asked for with; always a text."""

    required: bool = False
    title: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message: a text, a resource of the project by its address, or a file of it."""

    role: Role = "user"
    text: Compiled | None = None
    resource: Compiled | None = None
    file: str = ""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Messages with holes for arguments. `clients` None: every client."""

    name: str
    title: str = ""
    description: str = ""
    arguments: dict[str, Argument] = {}
    messages: tuple[Message, ...] = ()
    clients: tuple[str, ...] | None = None
    file: str = ""

    def is_for(self, client: str) -> bool:
        return self.clients is None or client in self.clients


def prompt_files(project: Project) -> list[Path]:
    """The files of the folder that `serve.prompts` names. Raises SpecError where that cannot be read."""
    return files_in(project.root / project.serve.prompts) if project.serve.prompts else []


def load_prompt(path: Path, *, file: str | None = None) -> Prompt:
    """Read one file. Raises SpecError with every fault."""
    prompt, faults = examine_prompt(path, file=file)
    if any(not fault.warning for fault in faults):
        raise SpecError(faults)
    return prompt


def examine_prompt(path: Path, *, file: str | None = None) -> tuple[Prompt, list[Fault]]:
    """The prompt as far as it could be read, and all its faults. Raises SpecError for what is no YAML."""
    document = load(path, file=file)
    sink = Sink(document)
    reader = Reader.of(sink, (), document.data, "a prompt") or Reader(sink, (), {})
    name = reader.text("name") or path.stem
    if not TOOL_NAME.fullmatch(name):
        sink.add(f"{quoted(name)} cannot be a prompt's name: {NAME_RULE}", reader.places.get("name", ()))
    arguments = _read_arguments(reader)
    prompt = Prompt(
        name=name,
        title=reader.text("title") or "",
        description=reader.text("description") or "",
        arguments=arguments,
        messages=_read_messages(reader, arguments),
        clients=reader.texts("clients"),
        file=document.file,
    )
    reader.done({"prompt": "did you mean text?", "inputs": "did you mean arguments?"})
    return prompt, in_order(sink.faults)


def _read_arguments(reader: Reader) -> dict[str, Argument]:
    inner = reader.inner("arguments")
    read = {}
    for name in inner.data if inner else ():
        found = inner.take(name) if inner else None
        said = Reader.of(reader.sink, found.path, found.value, quoted(name)) if found else None
        read[name] = _argument(said) if said else Argument()
    return read


def _argument(reader: Reader) -> Argument:
    argument = Argument(
        title=reader.text("title") or "",
        description=reader.text("description") or "",
        enum=reader.texts("enum"),
        required=reader.flag("required"),
    )
    reader.done({"type": "an argument of a prompt is always a text", "default": "write ${input.x ?? '…'}"})
    return argument


def _read_messages(reader: Reader, arguments: dict[str, Argument]) -> tuple[Message, ...]:
    """`messages:`, or `text:` for a single one."""
    text, found = reader.take("text"), reader.take("messages")
    if (text is None) == (found is None):
        reader.sink.add("a prompt has `messages`, or `text` for one of the user", reader.path)
        return ()
    if text is not None:
        return (Message(text=_expression(reader.sink, text, arguments)),)
    path, messages = found or Found((), None)
    if not isinstance(messages, list) or not messages:
        reader.sink.wrong("a list of messages", path, messages)
        return ()
    return tuple(
        _message(reader.sink, (*path, index), value, arguments) for index, value in enumerate(messages)
    )


def _message(sink: Sink, path: KeyPath, value: Any, arguments: dict[str, Argument]) -> Message:
    if isinstance(value, str):
        return Message(text=_expression(sink, Found(path, value), arguments))
    reader = Reader.of(sink, path, value, "a message")
    if reader is None:
        return Message()
    role = reader.choice(("user", "assistant"), "role") or "user"
    given = {name: found for name in ("text", "resource") if (found := reader.take(name))}
    file = reader.text("file") or ""
    if len(given) + bool(file) != 1:
        sink.add("a message has one of `text`, `resource` and `file`", path)
    reader.done()
    parts = {name: _expression(sink, found, arguments) for name, found in given.items()}
    return Message(role=cast("Role", role), file=file, **parts)


def _expression(sink: Sink, found: Found, arguments: dict[str, Argument]) -> Compiled | None:
    """A text with holes, in which nothing but `input` and its declared members is named."""
    if not isinstance(found.value, str):
        sink.wrong("text", *found)
        return None
    read = placed(sink, found)
    for reference in read.references if read else ():
        if reference.root != "input":
            sink.add(f"{quoted(reference.root)} is not known here: there is only `input`", found.path)
        elif reference.path and reference.path[0] not in arguments:
            name = str(reference.path[0])
            hint = meant(name, arguments, otherwise="declare it under `arguments`")
            sink.add(f"there is no argument {quoted(name)}", found.path, suggestion=hint)
    return read.compiled if read else None
