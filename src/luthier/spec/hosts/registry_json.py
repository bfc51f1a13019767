"""Reads the `server.json` of an MCP registry: one package or remote of those that it offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec.hosts.drafts import Draft
from luthier.spec.hosts.inputs import Inputs
from luthier.spec.hosts.packages import KINDS, read_package
from luthier.spec.hosts.variables import Surroundings
from luthier.spec.reader import Reader
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from luthier.spec.document import Document
    from luthier.spec.origin import KeyPath

_REMOTES = {"streamable-http": "http", "streamable": "http", "http": "http", "sse": "sse"}
_UNREAD = ("$schema", "_meta", "version", "version_detail", "repository", "website_url", "icons", "status")


def read_offer(document: Document, at: KeyPath, offer: str = "") -> tuple[str, Draft]:
    """The server's short name, and its draft. Without `offer` the first that can be had here is taken."""
    draft = Draft(document, at, Surroundings())
    reader = Reader(draft.faults, at, document.get(at))
    full = reader.text("name", required=True) or ""
    name = full.rpartition("/")[2]
    draft.put("name", reader.text("title") or full, reader.places.get("name", at))
    draft.put("description", reader.text("description"), reader.places.get("description", at))
    if reader.take("status") and reader.data.get("status") != "active":
        draft.note(f"its publisher says that it is {quoted(str(reader.data['status']))}", reader.at("status"))
    offers = _offers(reader)
    for key in _UNREAD:
        reader.raw(key)
    for key in reader.left():
        draft.note(f"{quoted(key)} is not taken over", reader.at(key))
    chosen = _chosen(draft, offers, offer)
    if chosen is not None:
        inputs = Inputs(draft, name)
        (_read_remote if chosen.startswith("remotes") else read_package)(draft, offers[chosen], inputs)
    return name, draft


def _offers(reader: Reader) -> dict[str, Reader]:
    """What is offered, by a name such as `packages[0]`."""
    offers = {}
    for kind in ("packages", "remotes"):
        found = reader.take(kind)
        for index, item in enumerate(found.value if found and isinstance(found.value, list) else ()):
            one = Reader.of(
                reader.sink, (kind, index) if not reader.path else (*reader.path, kind, index), item, kind
            )
            if one is not None:
                offers[f"{kind}[{index}]"] = one
    return offers


def _chosen(draft: Draft, offers: dict[str, Reader], wanted: str) -> str | None:
    if wanted:
        if wanted in offers:
            return wanted
        message = f"nothing is offered as {quoted(wanted)}"
        draft.faults.add(message, draft.path, suggestion=meant(wanted, offers, otherwise=listed(offers)))
        return None
    usable = [name for name, one in offers.items() if not _obstacle(name, one)]
    if not usable:
        why = listed(f"{name} {_obstacle(name, one)}" for name, one in offers.items())
        draft.faults.add(f"nothing that it offers can be used here: {why or 'it offers nothing'}", draft.path)
        return None
    for name, one in offers.items():
        if name != usable[0]:
            obstacle = _obstacle(name, one)
            hint = "" if obstacle else f"--offer {name}"
            draft.note(
                f"{quoted(name)} is left{f': it {obstacle}' if obstacle else ''}", one.path, suggestion=hint
            )
    return usable[0]


def _obstacle(name: str, one: Reader) -> str:
    """Why it cannot be had here; empty if it can."""
    if name.startswith("remotes"):
        type_ = _word(one, "type", "transportType", "transport_type")
        return "" if type_ in _REMOTES else f"is spoken to by {quoted(type_ or '?')}"
    type_ = _word(one, "registryType", "registry_type")
    if type_ not in KINDS:
        return f"is a package of the kind {quoted(type_ or '?')}"
    transport = one.data.get("transport")
    way = transport.get("type") if isinstance(transport, dict) else "stdio"
    return "" if way == "stdio" else f"is started here and spoken to by {quoted(str(way))}"


def _word(one: Reader, *keys: str) -> str:
    return next((str(one.data[key]) for key in keys if key in one.data), "")


def _read_remote(draft: Draft, remote: Reader, inputs: Inputs) -> None:
    transport = remote.choice(_REMOTES, "type", "transport_type")
    draft.put("transport", transport, remote.places.get("type", remote.path))
    url = remote.text("url", required=True) or ""
    at = remote.places.get("url", remote.path)
    draft.put("url", inputs.filled(url, remote.inner("variables"), at), at)
    headers: dict[str, str] = {}
    for header in inputs.named(remote, "headers"):
        name = header.text("name", required=True) or ""
        text = inputs.value(header, name)
        if text is not None:
            headers[name] = text
    draft.put("headers", headers, remote.places.get("headers", remote.path))
    for key in remote.left():
        draft.note(f"{quoted(key)} is not taken over", remote.at(key))
