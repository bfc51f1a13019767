"""Finds out whose file it is, and reads the servers in it: entries, and notes on what is not taken over."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from luthier.errors import Fault, NotFoundError, SpecError
from luthier.spec.hosts.drafts import Draft
from luthier.spec.hosts.entries import Habits, read_entry
from luthier.spec.hosts.jsonc import parse_json
from luthier.spec.hosts.questions import read_questions
from luthier.spec.hosts.registry_json import read_offer
from luthier.spec.hosts.shapes import Shape, shape_of, workspace_of
from luthier.spec.hosts.variables import Surroundings
from luthier.spec.load import read_text
from luthier.spec.project import ServerEntry
from luthier.spec.read import in_order
from luthier.text import near
from luthier.uri import SERVER_ID

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.spec.document import Document

MAX_BYTES = 8 * 1024 * 1024
"""Some hosts keep their whole history in that file."""

_LONGEST_ID = 64


class Imported(msgspec.Struct, frozen=True):
    """One server: its entry, its name in the file, and what the reader of the entry should know."""

    entry: ServerEntry
    written: str
    notes: tuple[Fault, ...] = ()


class Import(msgspec.Struct, frozen=True):
    """What a file holds. `host`: whose file it seems to be."""

    host: str
    servers: tuple[Imported, ...]
    notes: tuple[Fault, ...] = ()


def import_file(
    path: Path,
    *,
    root: Path,
    home: Path,
    workspace: Path | None = None,
    only: tuple[str, ...] = (),
    offer: str = "",
) -> Import:
    """The servers of a host's file, or those named in `only`. Raises SpecError with every fault.

    `root` is the project that they are for. `workspace` is the folder that the host would have open, where
    the file's own place does not tell. `offer` chooses among those of a `server.json`: `remotes[0]`.
    """
    document = parse_json(read_text(path, str(path), MAX_BYTES), str(path))
    shape = shape_of(document, path, workspace or root)
    if shape.host == "registry":
        drafts = [read_offer(document, shape.sections[0].path, offer)]
    else:
        drafts = _drafts(document, shape, workspace or workspace_of(path, home), root)
    drafts = _chosen(drafts, only)
    faults: list[Fault] = []
    servers: list[Imported] = []
    for (name, draft), id_ in zip(drafts, ids_for([name for name, _ in drafts]), strict=True):
        if id_ != name and "name" not in draft.says:
            draft.put("name", name, draft.path)
        entry = draft.entry(id_)
        faults += draft.faults.faults
        if entry is not None:
            servers.append(Imported(entry, name, tuple(draft.notes.faults)))
    if faults:
        raise SpecError(in_order(faults))
    return Import(shape.host, tuple(servers), shape.notes)


def _drafts(document: Document, shape: Shape, workspace: Path | None, root: Path) -> list[tuple[str, Draft]]:
    """Every server of every section, the last of one name winning, as with the hosts."""
    found: dict[str, Draft] = {}
    for section in shape.sections:
        own = section.workspace or workspace
        around = Surroundings(own, read_questions(document, section.inputs), bare=shape.host == "gemini")
        habits = Habits(falls_back=shape.host == "vscode", elsewhere=own is not None and own != root)
        for name, value in document.get(section.path).items():
            draft = Draft(document, (*section.path, name), around)
            read_entry(draft, value, habits)
            if section.is_off(name):
                draft.switch_off()
            found[name] = draft
    return list(found.items())


def _chosen(drafts: list[tuple[str, Draft]], only: tuple[str, ...]) -> list[tuple[str, Draft]]:
    names = [name for name, _ in drafts]
    for wanted in only:
        if wanted not in names:
            raise NotFoundError("server", wanted, near=near(wanted, names), where="in that file")
    return [one for one in drafts if not only or one[0] in only]


def ids_for(names: list[str]) -> list[str]:
    """For each name a valid id that is like it, and no other's; a valid name is its own id."""
    taken = {name for name in names if SERVER_ID.fullmatch(name)}
    ids = []
    for name in names:
        if name in taken:
            ids.append(name)
            continue
        like = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_LONGEST_ID] or "server"
        unique, number = like, 2
        while unique in taken:
            suffix = f"-{number}"
            unique, number = like[: _LONGEST_ID - len(suffix)] + suffix, number + 1
        taken.add(unique)
        ids.append(unique)
    return ids
