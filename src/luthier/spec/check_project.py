"""What can be said about a project's servers without starting one: references, credentials, launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import Fault, SpecError
from luthier.secrets import STORED, Reference, find
from luthier.spec.check_launch import check_launch
from luthier.spec.credentials import SECRET_FIELDS, written_credentials
from luthier.spec.document import dotted
from luthier.spec.prompt import examine_prompt, prompt_files
from luthier.spec.reader import camel
from luthier.spec.script_check import script_faults
from luthier.spec.urls import rules_of, told, urls_of
from luthier.spec.words import as_suggestion, listed, quoted
from luthier.web import form_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from luthier.spec.project import Project, ServerEntry
    from luthier.spec.provider import Provider

_FIELDS = ("command", "args", "env", "cwd", "url", "headers", "auth", "secret", "proxy", "tls")


def check_project(project: Project, environ: Mapping[str, str]) -> list[Fault]:
    """Faults of the server entries. Looks only whether variables are set, never at what they hold."""
    names = project.environ(environ)
    faults: list[Fault] = []
    for entry in project.servers.values():
        if not entry.disabled:
            faults += _check_references(entry, names)
        faults += _check_approval(entry)
        faults += _check_credentials(entry, production=project.environment == "production")
        faults += _check_urls(entry, project.environment)
        faults += check_launch(entry, project)
    for provider in project.providers.values():
        faults += _check_provider(provider, names)
    for index, script in enumerate(project.custom_tools):
        faults += script_faults(project.root, script, project.origin, "custom_tools", index)
    faults += _check_served(project)
    return faults


def _check_served(project: Project) -> Iterator[Fault]:
    """Files that are offered and not there, and what is wrong with prompts."""
    serve, origin = project.serve, project.origin
    for index, resource in enumerate(serve.resources):
        if not resource.is_template and not (project.root / resource.file).is_file():
            message = f"there is no file {quoted(resource.file)}: it cannot be read"
            yield origin.fault(message, "serve", "resources", index, "file", warning=True)
    if serve.prompts and not (project.root / serve.prompts).is_dir():
        yield origin.fault(f"there is no folder {quoted(serve.prompts)}", "serve", "prompts", warning=True)
    names: dict[str, str] = {}
    try:
        files = prompt_files(project)
    except SpecError as error:
        yield from error.faults
        return
    for path in files:
        try:
            prompt, found = examine_prompt(path)
        except SpecError as error:
            yield from error.faults
            continue
        yield from found
        if names.setdefault(prompt.name, prompt.file) != prompt.file:
            message = f"{names[prompt.name]} has the name {quoted(prompt.name)} too"
            yield Fault(message, prompt.file, suggestion="write `name: …`")


def _check_provider(provider: Provider, names: Mapping[str, str]) -> Iterator[Fault]:
    for key in ("api_key", "base_url"):
        for reference in find(getattr(provider, key) or ""):
            stored = reference.kind in STORED and key == "api_key"
            if reference.value(names) is None and not stored:
                cost = f"steps that ask {quoted(provider.id)} will fail"
                message, suggestion, warning = _unresolved(reference, (key,), cost, ("api_key",))
                keys = (key,) if provider.origin.has(key) else ()
                yield provider.origin.fault(message, *keys, suggestion=suggestion, warning=warning)


def _check_approval(entry: ServerEntry) -> Iterator[Fault]:
    if not entry.approved:
        message = f"the server {quoted(entry.id)} waits for approval: it will not start"
        hint = f"luthier servers approve {entry.id}"
        yield entry.origin.fault(message, "approved", suggestion=hint, warning=True)


def _check_references(entry: ServerEntry, names: Mapping[str, str]) -> Iterator[Fault]:
    for keys, text in texts_of(entry):
        for reference in find(text):
            stored = (
                reference.kind in STORED and keys[0] in SECRET_FIELDS
            )  # what is there shows when it is read
            if reference.value(names) is None and not stored:
                cost = f"the server {quoted(entry.id)} will not start"
                message, suggestion, warning = _unresolved(reference, keys, cost, SECRET_FIELDS)
                start = reference.start
                yield entry.origin.fault(message, *keys, offset=start, suggestion=suggestion, warning=warning)


def _unresolved(
    reference: Reference, keys: tuple[str | int, ...], cost: str, secret: tuple[str, ...]
) -> tuple[str, str, bool]:
    """What to say, what helps, and whether it is only a warning: it costs that much, and nothing else."""
    match reference.kind:
        case "env":
            needs = f"{quoted(dotted(keys))} needs the environment variable {reference.name}"
            return f"{needs}, which is not set: {cost}", "", True
        case "unknown":
            help_ = "write ${env.NAME}, ${NAME} or ${NAME:-default}; $${ writes ${ itself"
            return f"{quoted(reference.text)} is not a reference", help_, False
        case kind:
            where = listed(map(quoted, secret))
            return f"{kind} references may stand only under {where}", "", False


def _check_credentials(entry: ServerEntry, *, production: bool) -> Iterator[Fault]:
    hint = "write ${env.NAME} and set the variable, or ${secret:NAME}"
    for keys, message, _ in written_credentials(entry):
        yield entry.origin.fault(message, *_written(entry, keys), suggestion=hint, warning=not production)


def _check_urls(entry: ServerEntry, environment: str) -> Iterator[Fault]:
    """What the rules for URLs refuse. Where references decide, that is judged when it is asked."""
    rules = rules_of(entry, environment)
    for keys, text in urls_of(entry):
        known = find(text) or (keys == ("url",) and form_fault(text))  # the latter is told when it is read
        if known or (fault := rules.fault(text)) is None:
            continue
        written = _written(entry, keys)
        message = f"{quoted(str(written[-1]))} {told(fault, text, production=rules.production)}"
        yield entry.origin.fault(message, *written, suggestion=as_suggestion(fault.hint))


def texts_of(entry: ServerEntry) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text that is expanded, with the way to it as it is written."""
    for field in _FIELDS:
        match getattr(entry, field):
            case str() as text:
                yield (field,), text
            case tuple() as items:
                yield from (((field, index), item) for index, item in enumerate(items))
            case dict() as members:
                yield from (((field, key), item) for key, item in members.items())
            case msgspec.Struct() as part:
                for name in part.__struct_fields__:
                    if isinstance(text := getattr(part, name), str):
                        yield _written(entry, (field, name)), text


def _written(entry: ServerEntry, keys: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The way to a field as the file spells it: `clientSecret` for `client_secret`."""
    *before, last = keys
    spelled = (*before, camel(last) if isinstance(last, str) else last)
    return spelled if entry.origin.has(*spelled) else keys
