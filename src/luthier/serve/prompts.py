"""The prompts that clients may ask for: read from their files, filled in, and what is missing asked for."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

from luthier.errors import (
    CallerError,
    ExpressionError,
    Fault,
    InputError,
    LuthierError,
    NotFoundError,
    SpecError,
)
from luthier.expr import Scope
from luthier.redaction import logger
from luthier.runtime.library import stamp
from luthier.serve.answer import sayable
from luthier.serve.offers import OWN
from luthier.serve.shelf import contents, inside, is_text, mime_of
from luthier.spec import load_prompt, prompt_files
from luthier.taint import UNTRUSTED, Labelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.caller import Caller
    from luthier.serve.shelf import Shelf
    from luthier.spec import Message, Project, Prompt

_log = logger("luthier.serve")


class Prompts:
    """What `serve.prompts` offers. Files that have changed are read anew; a broken one costs itself only."""

    def __init__(self, project: Project, shelf: Shelf) -> None:
        self._project = project
        self._shelf = shelf
        self._version: object = None
        self._read: dict[str, Prompt] = {}

    def listed(self, client: str) -> list[dict[str, Any]]:
        """The definitions, as the protocol has them."""
        return [_defined(prompt) for prompt in self._all().values() if _is_for(prompt, client)]

    def find(self, client: str, name: str) -> Prompt:
        """The prompt of that name. Raises NotFoundError."""
        prompt = self._all().get(name)
        if prompt is None or not _is_for(prompt, client):
            raise NotFoundError("prompt", name)
        return prompt

    async def get(
        self, client: str, prompt: Prompt, given: Mapping[str, str], caller: Caller
    ) -> dict[str, Any]:
        """The prompt with its arguments filled in. For missing ones the person at the client is asked.

        Raises InputError where an argument does not fit, or is missing and nobody can be asked.
        """
        arguments = await _completed(prompt, dict(given), caller)
        scope = Scope({"input": Labelled(arguments, UNTRUSTED)}, now=0)
        messages = [await self._message(client, message, scope) for message in prompt.messages]
        found: dict[str, Any] = {"messages": sayable(messages)}
        return {**found, "description": prompt.description} if prompt.description else found

    def version(self) -> object:
        """What changes when a file of them does."""
        try:
            return tuple((str(path), *stamp(path)) for path in prompt_files(self._project))
        except SpecError as error:
            return str(error)

    async def _message(self, client: str, message: Message, scope: Scope) -> dict[str, Any]:
        if message.text is not None:
            text = _evaluated(message.text, scope)
            return {"role": message.role, "content": {"type": "text", "text": text}}
        if message.resource is not None:
            uri = _evaluated(message.resource, scope)
            try:
                read = await self._shelf.read(client, uri)
            except NotFoundError as error:
                raise InputError([Fault(str(error))]) from error
            return {"role": message.role, "content": {"type": "resource", "resource": read}}
        return {"role": message.role, "content": await asyncio.to_thread(self._file, message.file)}

    def _file(self, file: str) -> dict[str, Any]:
        path = inside(self._project.root.resolve(), file)
        if path is None:
            raise LuthierError(f"A file of this prompt is not there: {file}.")
        data = path.read_bytes()
        mime = mime_of(path, data)
        kind = mime.partition("/")[0]
        if kind in ("image", "audio"):
            return {"type": kind, "data": base64.b64encode(data).decode(), "mimeType": mime}
        if is_text(mime):
            return {"type": "text", "text": data.decode("utf-8", "replace")}
        return {"type": "resource", "resource": contents(f"file:{file}", data, mime)}

    def _all(self) -> dict[str, Prompt]:
        version = self.version()
        if version == self._version:
            return self._read
        self._version, self._read = version, {}
        try:
            files = prompt_files(self._project)
        except SpecError as error:
            _log.warning("no prompts are offered: %s", error)
            return self._read
        for path in files:
            try:
                prompt = load_prompt(path)
            except SpecError as error:
                _log.warning("%s is not offered: %s", path, error)
                continue
            self._read.setdefault(prompt.name, prompt)
        return self._read


def _is_for(prompt: Prompt, client: str) -> bool:
    return not client.startswith(OWN) and prompt.is_for(client)


async def _completed(prompt: Prompt, given: dict[str, str], caller: Caller) -> dict[str, str]:
    """The arguments, each a text that fits."""
    faults = [
        Fault(f"the prompt {prompt.name} has no argument {name!r}")
        for name in given
        if name not in prompt.arguments
    ]
    faults += [
        Fault(f"the argument {name!r} must be one of {', '.join(argument.enum or ())}")
        for name, argument in prompt.arguments.items()
        if name in given and not argument.fits(given[name])
    ]
    missing = [name for name, argument in prompt.arguments.items() if argument.required and name not in given]
    if missing and not faults and caller.can("elicitation"):
        return given | await _asked(prompt, missing, caller)
    faults += [Fault(f"the argument {name!r} is missing") for name in missing]
    if faults:
        raise InputError(faults)
    return given


async def _asked(prompt: Prompt, missing: list[str], caller: Caller) -> dict[str, str]:
    fields = {}
    for name in missing:
        argument = prompt.arguments[name]
        said = {
            "title": argument.title,
            "description": argument.description,
            "enum": list(argument.enum or ()),
        }
        fields[name] = {"type": "string", **{key: value for key, value in said.items() if value}}
    reaction = await caller.elicit(f"The prompt {prompt.name} needs this.", fields, key="arguments")
    if not reaction.accepted:
        raise CallerError("The arguments of the prompt were not given.")
    return reaction.content


def _evaluated(expression: Any, scope: Scope) -> str:
    try:
        value = expression.evaluate(scope).value
    except ExpressionError as error:
        raise InputError([Fault(str(error))]) from error
    return value if isinstance(value, str) else "" if value is None else str(value)


def _defined(prompt: Prompt) -> dict[str, Any]:
    arguments = [
        {
            "name": name,
            **({"title": argument.title} if argument.title else {}),
            **({"description": argument.description} if argument.description else {}),
            "required": argument.required,
        }
        for name, argument in prompt.arguments.items()
    ]
    found = {"name": prompt.name, "title": prompt.title, "description": prompt.description}
    return {key: value for key, value in found.items() if value} | {"arguments": arguments}
