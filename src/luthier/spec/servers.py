"""Reads server entries: every spelling of every field onto the one ServerEntry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.secrets import find
from luthier.spec.origin import Origin
from luthier.spec.project import REVISIONS, ServerEntry, Transport
from luthier.spec.reader import Reader
from luthier.spec.server_parts import (
    read_auth,
    read_breaker,
    read_launch,
    read_sandbox,
    read_tls,
    read_tools,
    read_trust,
)
from luthier.spec.words import as_suggestion, quoted
from luthier.uri import SERVER_ID
from luthier.web import form_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.errors import Fault
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Found, Sink

TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable_http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "rest": "rest",
    "auto": "auto",
}
ONLY_PROCESS = ("args", "env", "cwd", "inherit_env", "sandbox")
BESIDE_LAUNCH = ("command", "args", "cwd", "sandbox", "url")
ONLY_URL = ("headers", "auth", "secret", "tls", "proxy", "allow_private")
_HINTS = {
    "envFile": "`env_file` stands at the top of luthier.yaml",
    "autoApprove": "`tools: {ask: […]}` names tools that ask; `luthier servers import` reads such files",
    "alwaysAllow": "`tools: {ask: […]}` names tools that ask; `luthier servers import` reads such files",
    "oauth": "write auth: {type: oauth, …}",
}


def read_servers(sink: Sink, found: Found) -> dict[str, ServerEntry] | None:
    """A mapping from id to entry, or a list of entries that say their own id; None for anything else.

    Faulty entries are there too, as far as they could be read, so that nobody takes them for absent.
    """
    if not isinstance(found.value, (dict, list)):
        sink.wrong("a mapping or a list of servers", *found)
        return None
    entries: dict[str, ServerEntry] = {}
    for _, entry, _ in each_server(sink, found):
        if entry is not None and entry.id:
            entries.setdefault(entry.id, entry)
    return entries


def each_server(sink: Sink, found: Found) -> Iterator[tuple[KeyPath, ServerEntry | None, list[Fault]]]:
    """Where each server stands, its entry as far as it could be read, and the faults and warnings in it.

    The id of an entry that has none is empty. None: what stands there is no entry at all and has no id.
    """
    seen: set[str] = set()
    for path, key, value in _entries(found):
        before = len(sink.faults)
        reader = Reader.of(sink, path, value, f"the server {quoted(key)}" if key else "a server")
        if reader is None:
            yield path, ServerEntry(id=key) if key else None, sink.faults[before:]
            continue
        reader = _lifted(reader)
        id_ = _read_id(reader, key)
        entry = _read_server(reader, id_ or "")
        if id_ in seen:
            sink.add(f"there are two servers named {quoted(str(id_))}", path)
        elif id_:
            seen.add(id_)
        yield path, entry, sink.faults[before:]


def _entries(found: Found) -> list[tuple[KeyPath, str, Any]]:
    if isinstance(found.value, dict):
        return [((*found.path, key), key, value) for key, value in found.value.items()]
    return [((*found.path, index), "", value) for index, value in enumerate(found.value)]


def _lifted(reader: Reader) -> Reader:
    """`transport: {type: …, …}`: what stands inside it belongs to the entry itself."""
    nested = reader.data.get("transport")
    if not isinstance(nested, dict):
        return reader
    path = (*reader.path, "transport")
    for key in nested:
        if key in reader.data:
            message = f"{quoted(key)} stands in the entry and under `transport`: write only one of them"
            reader.sink.add(message, (*path, key), key=True)
    outer = {key: value for key, value in reader.data.items() if key != "transport"}
    return Reader(
        reader.sink,
        reader.path,
        {**nested, **outer},
        {key: (*path, key) for key in nested if key not in outer},
    )


def _read_id(reader: Reader, key: str) -> str | None:
    """The key of a mapping; in a list `id`, else `name`."""
    written, name, at = reader.text("id"), reader.text("name"), reader.path
    if key:
        if written is not None and written != key:
            message = f"`id` says {quoted(written)}, and the entry stands under {quoted(key)}"
            reader.sink.add(message, reader.at("id"), suggestion="leave it out")
    else:
        key = written or name or ""
        at = reader.places.get("id") or reader.places.get("name") or reader.path
    if not key:
        if written == "" or name == "" or not {"id", "name"} & reader.places.keys():
            reader.sink.add("`id` is missing", reader.path)
        return None
    if not SERVER_ID.fullmatch(key):
        message = f"{quoted(key)} cannot be a server's id"
        suggestion = "1 to 64 letters, digits, _ and -; a name for people goes under `name`"
        reader.sink.add(message, at, key=at == reader.path, suggestion=suggestion)
        return None
    return key


def _read_server(reader: Reader, id_: str) -> ServerEntry:
    """The entry as far as it could be read."""
    fields: dict[str, Any] = {
        "name": reader.text("name") or id_,
        "description": reader.text("description"),
        **_read_reach(reader),
        "args": reader.texts("args"),
        "env": reader.text_map("env"),
        "inherit_env": reader.texts("inherit_env"),
        "cwd": reader.text("cwd"),
        "headers": reader.text_map("headers"),
        "auth": read_auth(reader),
        "secret": reader.text("secret"),
        **_read_times(reader),
        "max_retries": reader.whole("max_retries", high=10),
        "max_concurrent_calls": reader.whole("max_concurrent_calls", low=1),
        "allowed_agents": reader.who("allowed_agents"),
        "tools": read_tools(reader),
        "disabled": reader.flag("disabled"),
        "approved": reader.flag("approved", default=True),
        "tls": read_tls(reader),
        "proxy": reader.text("proxy"),
        "breaker": read_breaker(reader),
        "max_message_bytes": reader.whole("max_message_bytes", low=1024),
        "allow_private": reader.flag("allow_private"),
        "share": reader.flag("share", default=True),
        "required": reader.flag("required"),
        "sandbox": read_sandbox(reader),
        "trust": read_trust(reader),
        "protocol": _read_protocol(reader),
    }
    _check_fit(reader, fields["transport"])
    reader.done(_HINTS)
    origin = Origin(reader.sink.document, reader.path, reader.places)
    return ServerEntry(
        id=id_, origin=origin, **{key: value for key, value in fields.items() if value is not None}
    )


def _read_reach(reader: Reader) -> dict[str, Any]:
    """Transport, command and URL: what is said about one decides the others."""
    transport = cast("Transport | None", reader.choice(TRANSPORTS, "transport", "type"))
    command = reader.text("command")
    launch = read_launch(reader)
    url = reader.text("url", "http_url", "server_url")
    at_url = reader.places.get("url", reader.path)
    if command is not None and url is not None:
        reader.sink.add("a server has either `command` or `url`, not both", at_url, key=True)
    elif command is None and url is None and not {"command", "url", "launch"} & reader.places.keys():
        reader.sink.add("a server needs a `command` or a `url`", reader.path)
    if url is not None and not find(url) and (fault := form_fault(url)) is not None:
        reader.sink.add(f"the url {fault.why}", at_url, suggestion=as_suggestion(fault.hint))
    if transport is None:
        by_url: Transport = "http" if at_url[-1:] == ("httpUrl",) else "auto"
        transport = "stdio" if url is None else by_url
    elif transport == "stdio" and url is not None and command is None:
        message = "a `stdio` server is started by a `command`, not reached by a url"
        reader.sink.add(message, reader.places["transport"])
    elif transport != "stdio" and (command or launch) is not None and url is None:
        at = reader.places["transport"]
        key = quoted("command" if launch is None else "launch")
        reader.sink.add(f"a server with {key} speaks stdio, not {quoted(transport)}", at)
    return {"transport": transport, "command": command, "launch": launch, "url": url}


def _read_protocol(reader: Reader) -> str | None:
    revision = reader.choice(("auto", *REVISIONS), "protocol")
    return None if revision == "auto" else revision


def _read_times(reader: Reader) -> dict[str, float | None]:
    both = reader.seconds("timeout")
    connect = reader.seconds("timeout_ms")
    call, longest = reader.seconds("tool_timeout_ms"), reader.seconds("tool_timeout_max_ms")
    call = both if call is None else call
    if call is not None and longest is not None and longest < call:
        message = "`tool_timeout_max_ms` is less than the time of one call"
        reader.sink.add(message, reader.places["tool_timeout_max_ms"])
    return {
        "timeout": both if connect is None else connect,
        "tool_timeout": call,
        "tool_timeout_max": longest,
        "cache_ttl": reader.seconds("cache_ttl_ms", zero=True),
    }


def _check_fit(reader: Reader, transport: Transport) -> None:
    """Keys that do nothing for this way to a server are mistakes."""
    wrong: tuple[str, ...]
    if "launch" in reader.places:
        wrong, kind = (*BESIDE_LAUNCH, *ONLY_URL), "started by a launch profile"
    elif transport == "stdio":
        wrong, kind = ONLY_URL, "started by a command"
    else:
        wrong, kind = ONLY_PROCESS, "reached by URL"
    for name in wrong:
        if name in reader.places:
            message = f"{quoted(name)} means nothing for a server that is {kind}"
            reader.sink.add(message, reader.places[name], key=True)
