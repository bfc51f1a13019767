"""The last step before a start: files looked at again, a sandbox or none, and what is then executed."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect import ServerRegistry
from luthier.connect.isolation import Host, isolated
from luthier.connect.launch import prepare
from luthier.connect.profiled import draft_of
from luthier.connect.sandbox import Works
from luthier.connect.start import Draft, Pinned
from luthier.errors import ConnectError
from luthier.spec import Hole, Launch, LaunchProfile, Sandbox, ServerEntry
from luthier.spec.origin import Origin
from luthier.spec.python import document_of

if TYPE_CHECKING:
    from luthier.wire import StdioLaunch
    from luthier.wire.process import Armed

NONE = Works(why="bubblewrap is not installed", fix="Install it.")
SOME = Works(program="/usr/bin/bwrap")
ENTRY = ServerEntry(id="git", command="python")


def started(root: Path, works: Works, environment: str = "development", **box: Any) -> StdioLaunch:
    draft = Draft(argv=(sys.executable, "x.py"), env={}, cwd=root, script=None, sandbox=Sandbox(**box))
    host = Host(lambda: works)
    return isolated(ENTRY, draft, ServerRegistry(root=root, environment=environment), host)


def refused(*args: Any, **box: Any) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        started(*args, **box)
    return caught.value


def test_where_a_sandbox_is_required_and_there_is_none_nothing_starts(tmp_path: Path) -> None:
    error = refused(tmp_path, NONE, mode="required")
    assert "it must run in a sandbox, and bubblewrap is not installed" in error.message
    assert error.hint == "Install it."
    assert "must run in a sandbox" in refused(tmp_path, NONE, "production").message


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_production_takes_no_less_than_a_sandbox(mode: str, tmp_path: Path) -> None:
    assert "in production the sandbox is required" in refused(tmp_path, SOME, "production", mode=mode).message


def test_where_it_may_be_left_out_it_is_and_that_is_told(tmp_path: Path) -> None:
    launch = started(tmp_path, NONE, mode="auto")
    assert launch.arm is not None
    armed = launch.arm()
    assert armed.argv[0] == sys.executable
    assert armed.warning == "it runs without a sandbox: bubblewrap is not installed"
    assert started(tmp_path, SOME).arm is None


def test_the_network_is_ours_in_development_and_none_in_production_unless_it_is_said(tmp_path: Path) -> None:
    for environment, network, shared in (
        ("development", None, True),
        ("development", "none", False),
        ("production", None, False),
        ("production", "host", True),
    ):
        launch = started(tmp_path, SOME, environment, mode="required", network=network)
        assert launch.arm is not None
        armed = launch.arm()
        armed.gone()
        assert ("--unshare-net" not in armed.argv) == shared


def test_limits_that_cannot_be_kept_are_told_and_refused_where_they_were_asked_for(tmp_path: Path) -> None:
    host = Host(lambda: SOME, group=lambda _: (), root=True)

    def armed(**box: Any) -> Armed:
        draft = Draft(argv=("/bin/true",), env={}, cwd=tmp_path, script=None, sandbox=Sandbox(**box))
        launch = isolated(ENTRY, draft, ServerRegistry(root=tmp_path), host)
        assert launch.arm is not None
        return launch.arm()

    assert "for root that needs a control group" in armed(mode="required").warning
    with pytest.raises(ConnectError, match="its limits cannot be kept"):
        armed(mode="required", max_processes=5)


# Profiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that nobody else may write to, whatever the umask."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app").chmod(0o755)
    script = tmp_path / "app" / "server.sh"
    script.write_text("#!/bin/sh\necho hello $1\n")
    script.chmod(0o755)
    return tmp_path / "app"


def registry(folder: Path, environment: str = "development", **fields: Any) -> ServerRegistry:
    profile = LaunchProfile(
        **{
            "name": "app",
            "executable": str(folder / "server.sh"),
            "args": ("{who}",),
            "holes": {"who": Hole(pattern="[a-z]+", max_length=5)},
            "env": ("TOKEN",),
            **fields,
        }
    )
    return ServerRegistry(root=folder, environment=environment, launch_profiles={"app": profile})


def entry(profile: str = "app", values: dict[str, str] | None = None, **fields: Any) -> ServerEntry:
    values = {"who": "ada"} if values is None else values
    return ServerEntry(id="git", launch=Launch(profile=profile, values=values), **fields)


def profiled(registry: ServerRegistry, entry: ServerEntry) -> StdioLaunch:
    return prepare(
        entry, registry, {"PATH": "/evil", "HOME": "/root", "SECRET": "x", "TOKEN": "t", "LANG": "C"}
    )


WRITTEN = {"launch": {"values": {"who": "", "x": ""}}, "inherit_env": [], "env": {"TOKEN": ""}}
ORIGIN = Origin(document_of({"mcpServers": {"git": WRITTEN}}), ("mcpServers", "git"))


def barred(registry: ServerRegistry, entry: ServerEntry) -> str:
    with pytest.raises(ConnectError) as caught:
        profiled(registry, entry)
    assert not caught.value.retryable
    return caught.value.message


def test_a_profile_settles_program_arguments_variables_and_folder(folder: Path) -> None:
    launch = profiled(registry(folder), entry(env={"TOKEN": "${TOKEN}"}))
    assert launch.argv == (str(folder / "server.sh"), "ada")
    assert launch.env == {
        "PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/home/server",
        "LANG": "C",
        "TOKEN": "t",
    }
    assert launch.arm is not None
    armed = launch.arm()
    assert armed.umask == 0o077
    assert Path(str(armed.executable)).readlink() == (folder / "server.sh").resolve()
    made = Path(armed.cwd or "")
    assert list(made.iterdir()) == []
    armed.started()
    armed.gone()
    armed.gone()
    assert not made.exists()


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"profile": "other"}, "launch", "there is no launch profile 'other'"),
        ({"values": {}}, "launch.values", "the value of 'who' is missing"),
        ({"values": {"who": "Ada"}}, "launch.values.who", "the value of 'who' does not match"),
        ({"values": {"who": "abcdef"}}, "launch.values.who", "the value of 'who' has more than 5 characters"),
        ({"values": {"who": "ada", "x": "y"}}, "launch.values.x", "the value of 'x' is not a hole"),
        ({"env": {"OTHER": "x"}}, "env", "'OTHER' is not among the variables"),
        ({"inherit_env": ("SECRET",)}, "inherit_env", "'SECRET' is not among the variables"),
        ({"env": {"TOKEN": "() { :; }"}}, "env.TOKEN", "the value of TOKEN is a shell function"),
    ],
)
def test_what_a_profile_does_not_foresee_is_refused_with_its_place(
    folder: Path, fields: dict[str, Any], key: str, said: str
) -> None:
    message = barred(registry(folder), entry(origin=ORIGIN, **fields))
    assert f"mcpServers.git.{key}" in message.partition(": ")[2].partition(": ")[0]
    assert said in message


def test_a_refusal_says_what_there_is_and_who_can_change_it(folder: Path) -> None:
    def hint(entry: ServerEntry, registry: ServerRegistry) -> str:
        with pytest.raises(ConnectError) as caught:
            profiled(registry, entry)
        return caught.value.hint

    assert hint(entry("other"), registry(folder)) == "Launch profiles of this project: app."
    profile = LaunchProfile(name="app", executable="/opt/app")
    several = ServerRegistry(root=folder, launch_profiles={"app": profile, "more": profile})
    assert hint(entry("other"), several) == "Launch profiles of this project: app, more."
    assert hint(entry("other"), ServerRegistry(root=folder)) == "Launch profiles of this project: none."
    assert "The operator can list its name" in hint(entry(env={"OTHER": "x"}), registry(folder))


def test_whatever_a_profile_runs_is_vouched_for(folder: Path) -> None:
    def drafted(**fields: Any) -> Draft:
        made = registry(folder, **fields)
        started = entry(values={} if "holes" in fields else None)
        assert started.launch is not None
        return draft_of(started, started.launch, made, {})

    program, python = folder / "server.sh", Path(sys.executable)
    draft = drafted(sha256="aa")
    assert draft.pinned == (
        Pinned(program, "the program", ("executable",), "aa", executable=True),
        Pinned(Path("/bin/sh"), "the interpreter", ("executable",), executable=True),
    )
    assert (draft.script, draft.keys) == (None, ("launch",))
    draft = drafted(
        executable=str(python), args=("-I", "/srv/x.py"), holes={}, sha256="aa", script_sha256="bb"
    )
    assert draft.pinned == (
        Pinned(python, "the program", ("executable",), "aa", executable=True),
        Pinned(Path("/srv/x.py"), "the script", ("args",), "bb"),
    )
    assert draft.script == Path("/srv/x.py")
    assert drafted(executable="/bin/true", args=(), holes={}).env["PATH"] == "/usr/local/bin:/usr/bin:/bin"


def test_a_program_that_turns_out_to_be_an_interpreter_is_judged_as_one(folder: Path) -> None:
    (folder / "tool").symlink_to(sys.executable)
    said = barred(registry(folder, executable=str(folder / "tool"), args=("-c", "{who}")), entry())
    assert "the launch profile 'app' is refused: its argument 1" in said
    (folder / "busy").symlink_to("/bin/sh")
    said = barred(registry(folder, executable=str(folder / "busy")), entry())
    assert "the launch profile 'app' is refused: the program " in said
    assert "is a shell" in said
    said = barred(registry(folder, executable="/bin/x\0y"), entry())
    assert "the launch profile 'app' names no program: its path holds a NUL" in said


@pytest.mark.parametrize(
    "fields",
    [{"executable": "/bin/x\0y"}, {"executable": "/bin/sh"}, {"cwd": "/gone"}],
    ids=["a NUL", "a shell", "no folder"],
)
def test_what_is_wrong_with_a_profile_is_told_at_the_entry_that_names_it(
    folder: Path, fields: dict[str, str]
) -> None:
    message = barred(registry(folder, **fields), entry(origin=ORIGIN))
    assert message.startswith("Server 'git' cannot be started: mcpServers.git.launch: ")


def test_a_folder_that_is_not_there_is_said_to_be_missing(folder: Path) -> None:
    assert "'/gone' of its launch profile is not there" in barred(registry(folder, cwd="/gone"), entry())
    assert profiled(registry(folder, cwd="/tmp"), entry()).cwd == "/tmp"


def test_what_changed_since_it_was_checked_is_not_started(folder: Path) -> None:
    script = folder / "server.sh"
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    launch = profiled(registry(folder, sha256=digest), entry())
    assert launch.arm is not None
    armed = launch.arm()
    armed.started()
    armed.gone()
    script.write_text("#!/bin/sh\necho evil\n")
    with pytest.raises(ConnectError, match="SHA-256 differs"):
        launch.arm()
    assert "SHA-256 differs" in barred(registry(folder, sha256=digest), entry())


def test_of_two_files_that_are_looked_at_none_stays_open(folder: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    script = folder / "server.py"
    script.write_text("")
    script.chmod(0o666)
    said = barred(
        registry(folder, executable=sys.executable, args=("-I", str(script)), holes={}), entry(values={})
    )
    assert "the script" in said
    assert "may be written to by others" in said
    assert len(list(Path("/proc/self/fd").iterdir())) == before
