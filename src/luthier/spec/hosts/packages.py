"""The command that a package of a `server.json` is started by: always a list of arguments, never a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from luthier.spec.words import listed, quoted

if TYPE_CHECKING:
    from luthier.spec.hosts.drafts import Draft
    from luthier.spec.hosts.inputs import Inputs
    from luthier.spec.reader import Reader


class Kind(msgspec.Struct, frozen=True):
    """How packages of a registry are run: by which commands, with what before, and how they are versioned."""

    runners: tuple[str, ...]
    first: tuple[str, ...]
    version: str
    behind: tuple[str, ...] = ()  # between the package and its own arguments


KINDS = {
    "npm": Kind(("npx", "bunx", "pnpx"), ("-y",), "@"),
    "pypi": Kind(("uvx",), (), "=="),
    "oci": Kind(("docker", "podman"), ("run", "-i", "--rm"), ":"),
    "nuget": Kind(("dnx",), (), "@", ("--yes", "--")),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOURCES = {
    "registry_base_url": "packages come from where the runner looks for them",
    "file_sha256": "what the runner fetches is not compared with it",
}


def read_package(draft: Draft, package: Reader, inputs: Inputs) -> None:
    """Put command, arguments and environment into the draft."""
    type_ = package.choice(list(KINDS), "registry_type")
    kind = KINDS[type_ or "npm"]
    runner = _runner(draft, package, kind, type_ or "?")
    name = package.text("identifier", required=True) or ""
    version = package.text("version")
    for what in (name, version or ""):
        if what.startswith("-") or any(character.isspace() for character in what):
            draft.faults.add(f"{quoted(what)} cannot name a package", package.path)
    env = _environment(draft, package, inputs)
    first = list(kind.first) if runner in (kind.runners[0], "podman") else []
    if type_ == "oci":
        first += [word for variable in env for word in ("-e", variable)]
    before = _arguments(package, "runtime_arguments", inputs)
    if kind.first == ("-y",) and {"-y", "--yes"} & set(before):
        first = []
    args = [
        *first,
        *before,
        _versioned(name, version, kind),
        *kind.behind,
        *_arguments(package, "package_arguments", inputs),
    ]
    draft.put("transport", "stdio", package.path)
    draft.put("command", runner, package.places.get("runtime_hint", package.path))
    draft.put("args", args, package.places.get("identifier", package.path))
    draft.put("env", env, package.places.get("environment_variables", package.path))
    package.raw("transport")
    for key, why in _SOURCES.items():
        if found := package.take(key):
            draft.note(f"{quoted(str(found.path[-1]))} is not taken over: {why}", found.path)
    for key in package.left():
        draft.note(f"{quoted(key)} is not taken over", package.at(key))


def _runner(draft: Draft, package: Reader, kind: Kind, type_: str) -> str:
    hint = package.text("runtime_hint")
    if hint is None or hint in kind.runners:
        return hint or kind.runners[0]
    message = f"{quoted(hint)} is not taken over: {type_} packages are run by {listed(kind.runners)}"
    draft.note(message, package.places["runtime_hint"])
    return kind.runners[0]


def _versioned(name: str, version: str | None, kind: Kind) -> str:
    tagged = kind.version == ":" and (":" in name.rpartition("/")[2] or "@" in name)
    return name if version is None or tagged else f"{name}{kind.version}{version}"


def _environment(draft: Draft, package: Reader, inputs: Inputs) -> dict[str, str]:
    env: dict[str, str] = {}
    for one in inputs.named(package, "environment_variables"):
        name = one.text("name", required=True) or ""
        text = inputs.value(one, name, name if _NAME.fullmatch(name) else "")
        if text is not None:
            env[name] = text
        for key in one.left():
            draft.note(f"{quoted(key)} is not taken over", one.at(key))
    return env


def _arguments(package: Reader, key: str, inputs: Inputs) -> list[str]:
    """Positional ones as they are; `--name=value` for long names, `-n value` for short ones."""
    args: list[str] = []
    for one in inputs.named(package, key):
        is_named = one.choice(("positional", "named"), "type") == "named"
        name, hint = one.text("name") or "", one.text("value_hint") or ""
        if is_named and _is_switch(one):
            args.append(name)
            continue
        text = inputs.value(one, name or hint or "argument")
        if text is not None and is_named:
            args += [f"{name}={text}"] if name.startswith("--") else [name, text]
        elif text is not None:
            args.append(text)
    return args


def _is_switch(one: Reader) -> bool:
    """Whether it is always there and takes no value."""
    if {"value", "default", "valueHint", "value_hint"} & one.data.keys():
        return False
    return one.data.get("format") == "boolean" and one.flag("is_required")
