"""Reads `trigger:` of an ensemble: what starts it besides a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import SchemaError
from luthier.spec.http_trigger import HttpTrigger, read_http_trigger
from luthier.spec.reader import Found, Reader
from luthier.spec.serve import NAME_RULE, TOOL_NAME, read_tokens
from luthier.spec.words import listed, meant, quoted
from luthier.tools.schema import Schema

if TYPE_CHECKING:
    from luthier.spec.reader import Sink

TYPES = ("mcp", "api", "http", "webhook")
LATER = ("email", "queue", "cron", "build", "cli", "startup")
OTHER_AUTH = ("oauth", "api_key", "apiKey")


class McpTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """The ensemble as an MCP tool. `clients` and `tokens` None: whoever has a token of the project.

    A token of the trigger's own opens this ensemble and nothing else; where it has some, only these do, and
    those of the `clients` that it names.
    """

    name: str
    description: str = ""
    clients: tuple[str, ...] | None = None
    tokens: tuple[str, ...] | None = None
    output_schema: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"McpTrigger({self.name!r})"


class ApiTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """The ensemble may be run by the HTTP API. `clients` None: by every client of the project."""

    clients: tuple[str, ...] | None = None


Trigger = McpTrigger | ApiTrigger | HttpTrigger


def read_triggers(reader: Reader, ensemble: str) -> tuple[Trigger, ...]:
    """One trigger or a list of them; those of later versions are said to be without effect."""
    found = reader.take("trigger", "triggers")
    if found is None:
        return ()
    many = isinstance(found.value, list)
    each = [Found((*found.path, at), value) for at, value in enumerate(found.value)] if many else [found]
    read = (_read(reader.sink, one, ensemble) for one in each)
    return tuple(trigger for trigger in read if trigger is not None)


def _read(sink: Sink, found: Found, ensemble: str) -> Trigger | None:
    reader = Reader.of(sink, found.path, found.value, "a trigger")
    if reader is None:
        return None
    match reader.text("type", required=True):
        case "mcp":
            return _read_mcp(reader, ensemble)
        case "api":
            trigger = ApiTrigger(clients=reader.who("clients"))
            reader.done()
            return trigger
        case "http" | "webhook" as type_:
            return read_http_trigger(reader, ensemble, type_)
        case str() as type_ if type_ in LATER:
            message = f"this version does not use triggers of type {quoted(type_)} yet"
            sink.add(message, reader.places["type"], warning=True)
        case str() as type_:
            message = f"there is no trigger of type {quoted(type_)}"
            hint = meant(type_, (*TYPES, *LATER)) or f"known here: {listed((*TYPES, *LATER))}"
            sink.add(message, reader.places["type"], suggestion=hint)
    return None


def _read_mcp(reader: Reader, ensemble: str) -> McpTrigger:
    trigger = McpTrigger(
        name=_name(reader, ensemble),
        description=reader.text("description") or "",
        clients=reader.who("clients"),
        tokens=_auth(reader),
        output_schema=_schema(reader),
    )
    if reader.flag("public"):
        message = "`public` has no effect: every caller of a served ensemble needs a token"
        reader.sink.add(message, reader.places["public"], key=True, warning=True)
    reader.done()
    return trigger


def _name(reader: Reader, ensemble: str) -> str:
    name = reader.text("name", "tool_name")
    if not TOOL_NAME.fullmatch(ensemble if name is None else name):
        path = reader.path if name is None else reader.places["name"]
        what = quoted(ensemble if name is None else name)
        reader.sink.add(f"{what} cannot be a tool's name: {NAME_RULE}", path, suggestion="write `name: …`")
    return ensemble if name is None else name


def _auth(reader: Reader) -> tuple[str, ...] | None:
    auth = reader.inner("auth")
    if auth is None:
        return None
    type_ = "bearer" if (written := auth.text("type")) is None else written
    found = auth.take("tokens", "token", "secret")
    if type_ in OTHER_AUTH:
        message = f"this version has no {quoted(type_)} of triggers yet: with it nobody may call this"
        reader.sink.add(message, auth.places["type"], warning=True)
        return ()
    if type_ != "bearer":
        reader.sink.add(f"`type` of `auth` must be bearer, not {quoted(type_)}", auth.places["type"])
    auth.done()
    if found is None:
        auth.sink.add("`token` is missing", auth.path)
        return ()
    return read_tokens(reader.sink, found)


def _schema(reader: Reader) -> dict[str, Any] | None:
    """A schema of objects: revisions before 2026-07-28 know no other."""
    inner = reader.inner("output_schema")
    if inner is None:
        return None
    schema = dict(inner.data)
    path = reader.places["output_schema"]
    if schema.get("type") != "object":
        reader.sink.add("an output schema must be of `type: object`", path)
    try:
        Schema(schema).compile()
    except SchemaError as error:
        reader.sink.add(f"`output_schema` cannot be used: {error.message}", path, suggestion=error.hint)
    return schema
