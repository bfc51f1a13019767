"""The `serve:` section as a frozen value: who may call this project from outside, and what is offered.

A client's token is never in the file: it is a reference to one, or the SHA-256 of one.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from luthier.secrets import find
from luthier.spec.issuer import Issuer, read_issuer
from luthier.spec.reader import Found, Reader
from luthier.spec.resources import Resource, read_resources
from luthier.spec.words import kind, listed, meant, quoted
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

CLIENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""What the protocol allows a tool to be called."""

MAX_BODY_BYTES = 4 * 1024 * 1024

HASH = re.compile(r"sha256:[0-9a-f]{64}")
HOST = re.compile(r"[A-Za-z0-9_.-]+(:\d{1,5})?|\[[0-9a-fA-F:.]+\](:\d{1,5})?")
ORIGIN = re.compile(r"https?://(" + HOST.pattern + ")")


ROLES = ("run", "approve", "admin")
"""What a client may be: who runs, who decides about what waits for a person, and who sees the runs of all."""


class ServedClient(msgspec.Struct, frozen=True, kw_only=True):
    """What opens the door to a client, each a reference or `sha256:` and a hash, and what it may do there."""

    tokens: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("run",)

    def __repr__(self) -> str:
        return f"ServedClient(roles={self.roles!r})"


class Serve(msgspec.Struct, frozen=True, kw_only=True):
    """`clients` by their ids; `oauth`: who else may say who calls.

    `tools`: the address of each tool that is offered as it is, by the name that it is offered under; where
    that is the address itself, which may be a pattern (`mcp://git/*`), tools have the names that models see.
    `hosts` and `origins` are accepted besides those of the address that is listened on. `resources` are files
    that clients may read; `prompts` is the folder of those that they may ask for, "" for none.
    """

    clients: dict[str, ServedClient] = {}
    oauth: Issuer | None = None
    tools: dict[str, str] = {}
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: str = ""
    max_body_bytes: int = MAX_BODY_BYTES

    def __repr__(self) -> str:
        return f"Serve(clients={sorted(self.clients)!r})"


def read_serve(reader: Reader) -> Serve:
    """What `serve:` says."""
    inner = reader.inner("serve")
    if inner is None:
        return Serve()
    serve = Serve(
        clients=_read_clients(inner),
        oauth=read_issuer(inner, ROLES),
        tools=_read_tools(inner),
        hosts=_fitting(inner, "hosts", HOST, "is not a host, such as tools.example.com or 10.0.0.1:8443"),
        origins=_fitting(inner, "origins", ORIGIN, "is not an origin, such as https://app.example.com"),
        resources=read_resources(inner),
        prompts=_read_prompts(inner),
        max_body_bytes=inner.whole("max_body_bytes", low=1) or MAX_BODY_BYTES,
    )
    inner.done({"tokens": "tokens stand under the client that holds them: `clients: {NAME: [TOKEN]}`"})
    return serve


def _read_prompts(reader: Reader) -> str:
    folder = reader.text("prompts") or ""
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts or "\0" in folder:
        reader.sink.add("`prompts` is a folder inside the project", reader.places["prompts"])
    return folder


def read_tokens(sink: Sink, found: Found) -> tuple[str, ...]:
    """One token or a list of them, as references or hashes; a token itself is a fault."""
    listed = isinstance(found.value, list)
    tokens = sink.texts(*found, "a token or a list of tokens") if listed else (found.value,)
    for index, token in enumerate(tokens or ()):
        path: KeyPath = (*found.path, index) if listed else found.path
        if not isinstance(token, str):
            sink.wrong("a token or a list of tokens", path, token)
        elif not _is_reference(token) and not HASH.fullmatch(token):
            # Whatever stands here may be a token, so it is not repeated.
            message = "a token is a reference such as ${env.TOKEN}, or `sha256:` and its hash, nothing else"
            sink.add(message, path, suggestion="`luthier serve --new-token` makes one and prints its hash")
    return tuple(token for token in tokens or () if isinstance(token, str))


def _is_reference(text: str) -> bool:
    """Exactly one reference, without a default: a default would be a token that stands in the file."""
    found = find(text)
    return len(found) == 1 and found[0].text == text and found[0].default is None


def _read_clients(reader: Reader) -> dict[str, ServedClient]:
    inner = reader.inner("clients")
    read = {}
    for name, value in inner.data.items() if inner else ():
        path = (*reader.places["clients"], name)
        if not CLIENT.fullmatch(name):
            message = "a client's name is of letters, digits, `_`, `.` and `-`, at most 64"
            reader.sink.add(message, path, key=True)
        read[name] = _read_client(reader.sink, Found(path, value))
    return read


def _read_client(sink: Sink, found: Found) -> ServedClient:
    """Tokens alone, or a mapping of tokens and roles."""
    if not isinstance(found.value, dict):
        return ServedClient(tokens=read_tokens(sink, found))
    inner = Reader(sink, found.path, found.value)
    tokens = inner.take("tokens", "token", required=True)
    roles = inner.texts("roles")
    for index, role in enumerate(roles or ()):
        if role not in ROLES:
            message = f"there is no role {quoted(role)}"
            hint = meant(role, ROLES) or f"known here: {listed(ROLES)}"
            sink.add(message, (*inner.places["roles"], index), suggestion=hint)
    inner.done()
    client = ServedClient(tokens=() if tokens is None else read_tokens(sink, tokens))
    return client if roles is None else msgspec.structs.replace(client, roles=roles)


def _read_tools(reader: Reader) -> dict[str, str]:
    """Addresses and patterns in a list, names and addresses in a mapping; the list may hold such mappings."""
    found = reader.take("tools")
    if found is None:
        return {}
    many = isinstance(found.value, list)
    parts = [((*found.path, at), part) for at, part in enumerate(found.value)] if many else [found]
    read: dict[str, str] = {}
    for path, part in parts:
        if isinstance(part, dict):
            written = [((*path, name), str(name), text) for name, text in part.items()]
        elif many and isinstance(part, str):
            written = [(path, "", part)]
        elif many:
            reader.sink.wrong("text", path, part)
            continue
        else:
            reader.sink.wrong("a list of tool addresses, or a mapping of names to them", path, part)
            continue
        for place, name, text in written:
            if _is_address(reader.sink, place, name, text):
                read[name or text] = text
    return read


def _is_address(sink: Sink, path: KeyPath, name: str, text: object) -> bool:
    if name and not TOOL_NAME.fullmatch(name):
        sink.add(f"{quoted(name)} cannot be a tool's name: {NAME_RULE}", path, key=True)
    if not isinstance(text, str):
        sink.add(f"a tool's address must be text, not {kind(text)}", path)
        return False
    try:
        ToolUri.parse(text)
    except ValueError as error:
        sink.add(str(error), path)
        return False
    if name and is_pattern(text):
        sink.add("a pattern cannot have one name for all that it fits", path)
    return True


NAME_RULE = "letters, digits, `_`, `.` and `-`, at most 128"


def is_pattern(address: str) -> bool:
    """Whether it may stand for more than one tool."""
    return any(character in address for character in "*?[")


def _fitting(reader: Reader, key: str, form: re.Pattern[str], fault: str) -> tuple[str, ...]:
    texts = reader.texts(key) or ()
    for index, text in enumerate(texts):
        if not form.fullmatch(text):
            reader.sink.add(f"{quoted(text)} {fault}", (*reader.places[key], index))
    return tuple(text.lower() for text in texts)
