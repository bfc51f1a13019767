"""From luthier.yaml, or from Python data of the same shape, to a Project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from luthier.errors import Fault, SpecError
from luthier.secrets import find, parse_env
from luthier.spec.budget import read_budgets
from luthier.spec.load import load
from luthier.spec.origin import Origin
from luthier.spec.places import located, reading, real
from luthier.spec.policy import read_policies
from luthier.spec.project import ALLOWED_COMMANDS, STORE, AuditSettings, EnvFile, Environment, Project
from luthier.spec.python import document_of
from luthier.spec.read import in_order
from luthier.spec.read_profiles import read_profiles
from luthier.spec.read_providers import read_providers
from luthier.spec.reader import Reader, Sink
from luthier.spec.scripts import script_path
from luthier.spec.serve import read_serve
from luthier.spec.servers import read_servers
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.spec.document import Document
    from luthier.spec.project import ServerEntry

FILES = ("luthier.yaml", "luthier.yml")
UNUSED = (
    "agents",
    "name",
    "version",
    "description",
)

STORE_FORM = re.compile(r"sqlite:///[^:?]|postgres(ql)?(\+psycopg)?://")
STORE_PASSWORD = re.compile(r"(?:://[^/@:]*:|[?&]password=)(?P<password>[^@&]+)(?:@|&|$)")
_MAX_ENV_BYTES = 1024 * 1024
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_project(start: Path) -> Path | None:
    """The project file of a folder or of the nearest one above it."""
    start = real(start)
    for folder in (start, *start.parents):
        for name in FILES:
            if (folder / name).is_file():
                return folder / name
    return None


def load_project(path: Path | str, *, file: str | None = None) -> Project:
    """Read a project file; `file` is what faults call it. Raises SpecError with every fault."""
    path = Path(path)
    return compose_project(
        load(path, file=str(path) if file is None else file), root=real(path).parent, path=path
    )


def read_project(source: Mapping[str, Any], *, root: Path | str | None = None) -> Project:
    """Read Python data of the same shape. `root` is the project's folder (else the working directory)."""
    folder = Path.cwd() if root is None else real(Path(root))
    project = compose_project(document_of(source), root=folder)
    # Who names no folder has none to keep state in.
    return project if root is None or project.store else msgspec.structs.replace(project, store=STORE)


def compose_project(document: Document, *, root: Path, path: Path | None = None) -> Project:
    """The project of a document. Raises SpecError with every fault, warnings among them."""
    project, faults = examine_project(document, root=root, path=path)
    if project is None or any(not fault.warning for fault in faults):
        raise SpecError(faults)
    return project


def examine_project(
    document: Document, *, root: Path, path: Path | None = None
) -> tuple[Project | None, list[Fault]]:
    """The project as far as it could be read, and all faults and warnings in the order of the file."""
    sink = Sink(document)
    reader = Reader.of(sink, (), document.data, "a project")
    fields = _read(reader, root) if reader else {}
    faults = in_order(sink.faults)
    if fields.get("servers") is None:
        return None, faults
    origin = Origin(document, (), reader.places if reader else None)
    if path is not None:
        fields["store"] = fields["store"] or STORE
    return Project(root=root, file=path, warnings=tuple(faults), origin=origin, **fields), faults


def _read(reader: Reader, root: Path) -> dict[str, Any]:
    environment = reader.choice(("development", "production"), "environment") or "development"
    commands = reader.who("allowed_commands")
    exposed = reader.texts("expose_env") or ()
    for index, name in enumerate(exposed):
        if not ENV_NAME.fullmatch(name):
            message = f"{quoted(name)} is not the name of an environment variable"
            reader.sink.add(message, (*reader.places["expose_env"], index))
    fields = {
        "environment": cast("Environment", environment),
        "servers": _read_servers(reader),
        "allowed_commands": ALLOWED_COMMANDS if commands is None else commands,
        "launch_profiles": read_profiles(reader),
        "expose_env": exposed,
        "custom_tools": _read_custom_tools(reader),
        "env_file": _read_env_file(reader, root),
        "audit": _read_audit(reader),
        "policies": read_policies(reader),
        "budgets": read_budgets(reader),
        "providers": read_providers(reader, environment),
        "serve": read_serve(reader),
        "approval_timeout": reader.seconds("approval_timeout", zero=True),
        "store": _read_store(reader, production=environment == "production"),
        "files": _read_files(reader, root),
        "unused": _read_unused(reader),
    }
    reader.done({"env": "names from a file: `env_file`; names that ensembles may read: `expose_env`"})
    return fields


def _read_custom_tools(reader: Reader) -> tuple[str, ...]:
    """Python files below `scripts/`, written as in a step of `code`."""
    read = []
    for index, written in enumerate(reader.texts("custom_tools") or ()):
        try:
            read.append(script_path(written))
        except ValueError as error:
            reader.sink.add(str(error), (*reader.places["custom_tools"], index))
    return tuple(dict.fromkeys(read))


def _read_store(reader: Reader, *, production: bool) -> str:
    url = reader.text("store")
    if url is None:
        return ""
    if not find(url) and not STORE_FORM.match(url):
        message = "`store` is the path of a SQLite file or the URL of a PostgreSQL database"
        reader.sink.add(message, reader.places["store"], suggestion=f"{STORE} or postgresql://…")
    _read_path(reader, "store")
    password = STORE_PASSWORD.search(url)
    if password and not find(password["password"]):
        message = "the password of `store` stands in the file" + ", not allowed in production" * production
        hint = "keep it in the environment and write ${env.NAME}"
        reader.sink.add(message, reader.places["store"], suggestion=hint, warning=not production)
    return url


def _read_files(reader: Reader, root: Path) -> str:
    """`storage: {files: FOLDER}`; never a folder that the project's own files or its state lie in."""
    inner = reader.inner("storage")
    if inner is None:
        return ""
    folder = inner.text("files") or ""
    inner.done()
    if folder:
        path = real(located(root, folder))
        own = real(root / ".luthier")
        if real(root).is_relative_to(path) or own.is_relative_to(path):
            message = "`files` is the project's own folder, or one around it"
            reader.sink.add(message, inner.places["files"], suggestion="give them a folder of their own")
        elif any(path.is_relative_to(real(root / name)) for name in ("ensembles", "scripts")):
            message = "`files` lies among what the project runs: whoever writes files would write steps"
            reader.sink.add(message, inner.places["files"], suggestion="give them a folder of their own")
    return folder


def _read_audit(reader: Reader) -> AuditSettings:
    audit = reader.inner("audit")
    if audit is None:
        return AuditSettings()
    key, key_file = audit.text("key"), audit.text("key_file")
    if key is not None and not find(key):
        message = "the key of the audit log is a reference such as ${env.AUDIT_KEY}, never the key itself"
        reader.sink.add(message, audit.places["key"], suggestion="a file with the key is named by `key_file`")
    if key is not None and key_file is not None:
        audit.sink.add("the key is either in `key` or in `key_file`", audit.places["key_file"], key=True)
    checkpoints = audit.text("checkpoints")
    for name in ("key_file", "checkpoints"):
        _read_path(audit, name)
    settings = AuditSettings(
        key=key,
        key_file=key_file,
        checkpoints=checkpoints,
        fsync=audit.flag("fsync"),
        sink=cast("Any", audit.choice(("files", "store"), "sink") or "files"),
        record=cast("Any", _read_kept(audit)),
    )
    audit.done()
    return settings


def _read_path(reader: Reader, name: str) -> None:
    """A path that no file can have is told of here, before somebody opens it."""
    if "\0" in (text := reader.text(name) or ""):
        reader.sink.add(f"{quoted(text)} is not the name of a file", reader.places[name])


def _read_kept(audit: Reader) -> tuple[str, ...]:
    kept = audit.texts("record") or ()
    for index, what in enumerate(kept):
        if what not in ("arguments", "results"):
            message = f"`record` lists arguments, results or both, not {quoted(what)}"
            audit.sink.add(message, (*audit.places["record"], index))
    return kept


def _read_servers(reader: Reader) -> dict[str, ServerEntry] | None:
    """`mcpServers:`, `servers:` or `mcp: {servers: …}`; one of them."""
    found = reader.take("mcpServers", "mcp_servers", "servers")
    inner = reader.inner("mcp")
    nested = inner.take("servers") if inner else None
    if inner:
        inner.done()
    if found and nested:
        message = f"{quoted(str(found.path[-1]))} and `mcp.servers` say the same: write only one of them"
        reader.sink.add(message, nested.path, key=True)
    read = [read_servers(reader.sink, one) for one in (found, nested) if one]
    return (
        None if None in read else {key: entry for servers in read for key, entry in (servers or {}).items()}
    )


def _read_env_file(reader: Reader, root: Path) -> EnvFile | None:
    written = reader.text("env_file")
    if written is None:
        return None
    path, at = located(root, written), reader.places["env_file"]
    try:
        with reading(path) as stream:
            text = stream.read(_MAX_ENV_BYTES + 1).decode("utf-8")
        if len(text) > _MAX_ENV_BYTES:
            reader.sink.add(f"{quoted(written)} is larger than {_MAX_ENV_BYTES // 1024} KiB", at)
            return None
        return EnvFile(path, parse_env(text, file=str(path)))
    except OSError as error:
        reader.sink.add(f"{quoted(written)} cannot be read: {error.strerror}", at)
    except UnicodeDecodeError:
        reader.sink.add(f"{quoted(written)} is not UTF-8 text", at)
    except SpecError as error:
        reader.sink.faults.extend(error.faults)
    except ValueError:
        reader.sink.add(f"{quoted(written)} is not the name of a file", at)
    return None


def _read_unused(reader: Reader) -> dict[str, Any]:
    """Keys of later versions, kept as they are, and said to be without effect."""
    unused = {}
    for name in UNUSED:
        found = reader.raw(name)
        if found is None:
            continue
        unused[name] = found.value
        if name not in ("name", "version", "description"):
            message = f"this version does not use {quoted(str(found.path[-1]))} yet"
            reader.sink.add(message, found.path, key=True, warning=True)
    return unused
