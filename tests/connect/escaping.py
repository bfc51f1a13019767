"""Tries every vector of the corpus over every way in, and counts what was started: `python -m … FOLDER`.

A process of its own, because what counts starts, an audit hook of the interpreter, cannot be taken off again.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result
from typer.main import get_command

from luthier.cli.app import app
from luthier.connect import ConnectionManager, ServerRegistry
from luthier.connect.sandbox import working
from luthier.errors import LuthierError
from luthier.spec import LaunchProfile, load_project
from luthier.spec.project import Launch
from tests.connect.arsenal import Vector, arm, by_hand, corpus

if TYPE_CHECKING:
    from collections.abc import Callable

_STARTS = {
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "os.system",
    "pty.spawn",
}
_ALLOWED = ["npx", "node", "python3", "python", "uvx", "bash", "sh", "env"]
COMMAND = get_command(app)
starts: list[str] = []


def hook(event: str, args: tuple[Any, ...]) -> None:
    if event in _STARTS:
        starts.append(f"{event} {args[:2]}")


def invoked(*words: str) -> Result:
    return CliRunner().invoke(COMMAND, list(words))  # type: ignore[arg-type]  # typer's own copy of click


def luthier(folder: Path, *words: str) -> int:
    """The exit status of a command, run here and now."""
    os.chdir(folder)
    return invoked(*words).exit_code


def write_project(folder: Path, environment: str, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "luthier.yaml"
    file.write_text(json.dumps({"environment": environment, "allowed_commands": _ALLOWED, **more}))
    return file


def saved(folder: Path, environment: str, vector: Vector) -> bool:
    """Whether `servers add` takes it."""
    write_project(folder, environment)
    words = [f"--command={vector.command}", *(f"--arg={argument}" for argument in vector.args)]
    words += [f"--env={name}={value}" for name, value in vector.env.items()]
    words += [f"--inherit-env={name}" for name in vector.inherit_env]
    words += [f"--cwd={vector.cwd}"] if vector.cwd else []
    return luthier(folder, "servers", "add", "evil", *words) == 0


def imported(folder: Path, environment: str, vector: Vector) -> bool:
    """Whether what `servers import` took can be used without anybody's approval."""
    write_project(folder, environment)
    entry = {key: value for key, value in vector.entry().items() if key in ("command", "args", "env", "cwd")}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": entry}}))
    if luthier(folder, "servers", "import", ".mcp.json") != 0:
        return False
    return called(folder, environment, None)


def loaded(folder: Path, environment: str, vector: Vector) -> bool:
    """Whether `check` finds nothing to say of it."""
    write_project(folder, environment, mcpServers={"evil": vector.entry()})
    os.chdir(folder)
    told = invoked("check", "--json").output
    invoked("servers", "show", "evil")
    return not json.loads(told)["faults"]


def called(folder: Path, environment: str, vector: Vector | None) -> bool:
    """Whether its server can be connected to."""
    if vector is not None:
        write_project(folder, environment, mcpServers={"evil": vector.entry()})
    try:
        project = load_project(folder / "luthier.yaml")
    except LuthierError:
        return False
    return connects(ServerRegistry.of(project))


def profiled(folder: Path, environment: str, vector: Vector) -> bool:
    """Whether a profile that says the same can be read, or used if it comes from elsewhere."""
    argv = by_hand(vector) or [f"/usr/bin/{vector.command}", *vector.args]
    names = [*vector.env, *vector.inherit_env]
    said = {
        "executable": argv[0],
        "args": argv[1:],
        "env": names,
        **({"cwd": vector.cwd} if vector.cwd else {}),
    }
    launch = {"launch": "evil", "env": vector.env, "inherit_env": vector.inherit_env}
    file = write_project(folder, environment, launch_profiles={"evil": said}, mcpServers={"evil": launch})
    try:
        read = connects(ServerRegistry.of(load_project(file)))
    except LuthierError:
        read = False
    profile = LaunchProfile(
        name="evil", executable=argv[0], args=tuple(argv[1:]), env=tuple(names), cwd=vector.cwd
    )
    entry = load_project(write_project(folder, "development", mcpServers={"evil": {"command": "python3"}}))
    from msgspec.structs import replace

    used = replace(
        entry.servers["evil"],
        command=None,
        launch=Launch(profile="evil"),
        env=vector.env,
        inherit_env=tuple(vector.inherit_env),
        max_retries=0,
    )
    return read or connects(
        ServerRegistry([used], environment=environment, launch_profiles={"evil": profile}, root=folder)
    )


def connects(registry: ServerRegistry) -> bool:
    async def tried() -> bool:
        manager = ConnectionManager(registry, environ={"PATH": os.environ["PATH"]})
        try:
            await manager.manifest("evil")
        except LuthierError:
            return False
        else:
            return True
        finally:
            await manager.close_all()

    return asyncio.run(tried())


WAYS: dict[str, Callable[[Path, str, Vector], bool]] = {
    "save": saved,
    "import": imported,
    "load": loaded,
    "call": called,
    "profile": profiled,
}


def main(base: Path) -> None:
    working()  # the trial of the sandbox is no start of a server
    sys.addaudithook(hook)
    report: dict[str, Any] = {"tries": 0, "started": [], "marked": [], "taken": []}
    for number, vector in enumerate(corpus()):
        folder, mark = base / f"{number}" / "folder", base / f"{number}" / "mark"
        arm(folder, mark)
        aimed = vector.aimed(folder, mark)
        for environment in ("production", "development"):
            if environment == "development" and not vector.always:
                continue
            for name, way in WAYS.items():
                if name == "profile" and not vector.settles:
                    continue
                starts.clear()
                taken = way(base / f"{number}" / environment / name, environment, aimed)
                report["tries"] += 1
                which = f"{environment}, {name}: {vector.name}"
                report["started"] += [f"{which}: {start}" for start in starts]
                report["marked"] += [which] if mark.exists() else []
                report["taken"] += [which] if taken else []
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
