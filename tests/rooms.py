"""Reads the list of rooms in ARCHITECTURE.md and finds the imports that break it.

Every form of import counts: statements at any depth, those for type checking only, relative ones, and calls
of `import_module` and `__import__`. A computed name cannot be checked, so it is a fault of its own; so is
whatever gets at modules out of sight: code in a text, the table of loaded modules, finders by name.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "luthier"
FACE = "__init__"
FREE = frozenset({"msgspec"})
LOADERS = frozenset({"import_module", "__import__"})
HIDERS = {
    "builtins": frozenset({"exec", "eval"}),
    "sys": frozenset({"modules"}),
    "pkgutil": frozenset({"resolve_name"}),
    "runpy": frozenset({"run_module", "run_path"}),
}
"""By module, what gets at other modules out of sight. An entry of `sys.modules` may be set and deleted."""

FENCE = re.compile(r"^```rooms\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROOM = re.compile(r"  (?P<name>\w+)(?P<kind>/|\.py) +(?P<about>[^| ][^|]*?)(?: *\| *(?P<parties>.+))?")
PARTY = re.compile(r"(?P<name>[\w.]+)(?: in (?P<file>[\w./]+))?(?P<lazy> \(lazy\))?")


@dataclass(frozen=True)
class Party:
    """A third party that a room may import: in one file only, or only when a function runs, if so marked."""

    name: str
    file: str | None
    lazy: bool


@dataclass(frozen=True)
class Room:
    name: str
    folder: bool
    floor: int
    parties: tuple[Party, ...]


@dataclass(frozen=True)
class Import:
    """One import as written; `target` is None where the name is computed, or `hidden` by what is named."""

    line: int
    target: str | None
    eager: bool
    hidden: str = ""


def read_rooms(text: str) -> dict[str, Room]:
    fence = FENCE.search(text)
    if fence is None:
        raise ValueError("there is no block fenced with ```rooms")
    head, *lines = fence[1].splitlines()
    if head != f"src/{PACKAGE}/":
        raise ValueError(f"the list must start with src/{PACKAGE}/, not with {head!r}")
    rooms: dict[str, Room] = {}
    for floor, line in enumerate(lines):
        match = ROOM.fullmatch(line)
        if match is None:
            raise ValueError(f"not a line of the list: {line!r}")
        if match["name"] in rooms:
            raise ValueError(f"listed twice: {match['name']}")
        parties = tuple(_party(item) for item in (match["parties"] or "").split(",") if item.strip())
        rooms[match["name"]] = Room(match["name"], match["kind"] == "/", floor, parties)
    return rooms


def _party(text: str) -> Party:
    match = PARTY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a third party: {text.strip()!r}")
    return Party(match["name"].partition(".")[0], match["file"], lazy=match["lazy"] is not None)


def rooms_on_disk(root: Path) -> dict[str, bool]:
    """The rooms that are there, each with whether it is a folder. A folder without Python is none."""
    folders = {path.name: True for path in root.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return {path.stem: False for path in root.glob("*.py")} | folders


def faults(root: Path, rooms: dict[str, Room]) -> list[str]:
    """All that is wrong in the package at `root`, each as `file:line: what`."""
    disk = rooms_on_disk(root)
    found = [f"{name}: on disk, but not in the list" for name in sorted(disk.keys() - rooms.keys())]
    found += [f"{name}: in the list, but not on disk" for name in sorted(rooms.keys() - disk.keys())]
    found += [
        f"{name}: a folder in one and a file in the other of list and disk"
        for name in sorted(rooms.keys() & disk.keys())
        if rooms[name].folder != disk[name]
    ]
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        room = rooms.get(parts[0])
        if room is None or not _is_module(path, root):
            continue
        inside = path.relative_to(root / room.name).as_posix() if len(parts) > 1 else path.name
        for item in imports_of(path.read_text(encoding="utf-8"), parts, disk.keys() | rooms.keys()):
            complaint = _complaint(item, room, inside, rooms)
            if complaint is not None:
                found.append(f"{path.relative_to(root).as_posix()}:{item.line}: {complaint}")
    return found


def _is_module(path: Path, root: Path) -> bool:
    """Whether all folders down to `path` are packages. Others hold files to copy; INP001 finds them."""
    folders = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    return all((folder / "__init__.py").exists() for folder in folders)


def _complaint(item: Import, room: Room, inside: str, rooms: dict[str, Room]) -> str | None:
    if item.target is None:
        how = f"may import by {item.hidden}" if item.hidden else "imports by a computed name"
        return None if room.name == FACE else f"{how}, which cannot be checked"
    top, _, rest = item.target.partition(".")
    if top == PACKAGE:
        other = rooms.get(rest.partition(".")[0] or FACE)
        if other is None:
            return f"imports {item.target}, which is not in the list"
        if other.floor > room.floor:
            return f"imports {item.target}, which stands below {room.name} in the list"
        return None
    if top in sys.stdlib_module_names or top in FREE:
        return None
    allowed = [party for party in room.parties if party.name == top and party.file in {None, inside}]
    if not allowed:
        return f"imports {top}, a third party that has no place here"
    if item.eager and all(party.lazy for party in allowed):
        return f"imports {top} at once, though it is marked lazy"
    return None


def imports_of(source: str, parts: tuple[str, ...], rooms: set[str]) -> Iterator[Import]:
    """The imports in one file, which stands at `parts` below the package, as absolute names.

    A name that is taken from the package itself, and is not one of its rooms, is taken from its face.
    """
    finder = _Finder((PACKAGE, *parts))
    finder.visit(ast.parse(source))
    for item in finder.found:
        yield replace(item, target=_through_face(item.target, rooms))


def _through_face(target: str | None, rooms: set[str]) -> str | None:
    if target is None:
        return None
    top, _, rest = target.partition(".")
    if top == PACKAGE and rest.partition(".")[0] not in rooms:
        return f"{PACKAGE}.{FACE}"
    return target


class _Finder(ast.NodeVisitor):
    def __init__(self, module: tuple[str, ...]) -> None:
        self.module = module[:-1] if module[-1] == FACE else module
        self.package = module[:-1]
        self.loaders = set(LOADERS)
        self.hiders = {"__builtins__": "builtins"} | {name: name for name in HIDERS}
        self.eager = True
        self.found: list[Import] = []

    def add(self, node: ast.AST, target: str | None) -> None:
        self.found.append(Import(getattr(node, "lineno", 0), target, self.eager))

    def hide(self, node: ast.AST, what: str) -> None:
        self.found.append(Import(getattr(node, "lineno", 0), None, self.eager, what))

    def absolute(self, name: str, level: int) -> str:
        """A relative name with its leading dots counted in `level`, made absolute."""
        if level == 0:
            return name
        base = self.package[: max(0, len(self.package) - level + 1)]
        return ".".join((*base, name) if name else base)

    # Statements

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name)
            if alias.name in HIDERS:
                self.hiders[alias.asname or alias.name] = alias.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node.module or "", node.level)
        if base == "importlib":
            self.loaders |= {alias.asname or alias.name for alias in node.names if alias.name in LOADERS}
        for alias in node.names:
            if alias.name in HIDERS.get(base, ()):
                self.hide(node, f"{base}.{alias.name}")
        self.add_from(node, base, [alias.name for alias in node.names])

    def add_from(self, node: ast.AST, base: str, names: list[str]) -> None:
        if base != PACKAGE:
            self.add(node, base)
            return
        for name in names:
            self.add(node, f"{base}.{name}")

    # What runs when

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name | ast.Attribute) and "TYPE_CHECKING" in ast.unparse(node.test):
            self.later(node.body)
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(part)
        self.later(node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self.later([node.body])

    def later(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        eager, self.eager = self.eager, False
        for node in nodes:
            self.visit(node)
        self.eager = eager

    # Calls

    def visit_Call(self, node: ast.Call) -> None:
        if self.is_loader(node.func):
            self.add_call(node)
        else:
            self.visit(node.func)
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        if self.is_loader(node):  # handed on under another name, so its calls are out of sight
            self.add(node, None)
        elif node.id in HIDERS["builtins"] and isinstance(node.ctx, ast.Load):
            self.hide(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.is_loader(node):
            self.add(node, None)
        elif hider := self.hider(node):
            self.hide(node, hider)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and self.hider(node.value) == "sys.modules":
            self.visit(node.slice)  # to enter a module there, or take it out, gets at none
        else:
            self.generic_visit(node)

    def hider(self, node: ast.expr) -> str:
        """`sys.modules` and the like, under whatever name the module goes; empty for anything else."""
        if not isinstance(node, ast.Attribute):
            return ""
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        module = self.hiders.get(name, "")
        return f"{module}.{node.attr}" if node.attr in HIDERS.get(module, ()) else ""

    def is_loader(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.loaders
        return isinstance(node, ast.Attribute) and node.attr in LOADERS

    def add_call(self, node: ast.Call) -> None:
        given = {word.arg: word.value for word in node.keywords if word.arg}
        name = self.literal(node.args[0] if node.args else given.get("name"))
        names = self.literal(given.get("fromlist")) or [""]
        level = self.literal(given.get("level")) or 0
        if not isinstance(name, str) or not isinstance(level, int) or not isinstance(names, list | tuple):
            self.add(node, None)
            return
        bare = name.lstrip(".")
        base = self.absolute(bare, level or len(name) - len(bare))
        if len(name) > len(bare):
            base = self.below(node.args[1] if len(node.args) > 1 else given.get("package"), name)
        self.add_from(node, base, [str(item) for item in names])

    def below(self, package: ast.expr | None, name: str) -> str:
        """What `import_module(name, package)` means; a package not written out is taken to be this one."""
        known = self.literal(package)
        if isinstance(known, str):
            base = tuple(known.split("."))
        elif isinstance(package, ast.Name) and package.id == "__name__":
            base = self.module
        else:
            base = self.package
        bare = name.lstrip(".")
        return ".".join((*base[: max(0, len(base) - (len(name) - len(bare)) + 1)], bare))

    def literal(self, node: ast.expr | None) -> object:
        try:
            return None if node is None else ast.literal_eval(node)
        except ValueError:
            return None
