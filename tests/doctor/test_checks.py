"""Each check, over projects that have what it looks for, and that lack it."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier.connect.sandbox import Works
from luthier.doctor import CHECKS, Case, Finding, examine
from luthier.doctor.sandbox import sandbox
from luthier.errors import Fault, SpecError
from luthier.spec import Project, read_project
from luthier.store import Database, SqlState

if TYPE_CHECKING:
    from luthier.doctor.finding import Check

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/ada"}
WORKS, NONE = Works(program="/usr/bin/bwrap"), Works(why="bubblewrap is not installed", fix="Install it.")


def project(root: Path, **said: Any) -> Project:
    return read_project(said, root=root)


def found(check: str | Check, project: Project, **environ: str) -> dict[str, Finding]:
    check = CHECKS[check] if isinstance(check, str) else check
    return {finding.name: finding for finding in check(Case.of(project, ENVIRON | environ))}


def statuses(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.status for name, finding in findings.items()}


def test_a_command_that_a_server_needs_and_that_is_not_here_is_broken(tmp_path: Path) -> None:
    servers = {
        "a": {"command": "no-such-command"},
        "b": {"command": "python", "args": ["-m", "x"]},
        "c": {"command": "uvx", "args": ["x"], "disabled": True},
    }
    allowed = ["no-such-command", "python", "uvx"]
    told = found(
        "interpreters", project(tmp_path, servers=servers, allowed_commands=allowed), PATH="/nowhere"
    )
    assert statuses(told)["no-such-command"] == "broken"
    assert "needed by a" in told["no-such-command"].said
    assert "Install no-such-command" in told["no-such-command"].fix
    assert (told["python"].status, told["python"].said) == ("ok", str(Path(sys.executable).parent / "python"))
    bare = found("interpreters", project(tmp_path, allowed_commands=["no-such-command"]), PATH="/nowhere")
    assert statuses(bare)["no-such-command"] == "off"


@pytest.mark.parametrize(
    ("said", "works", "status"),
    [
        ({"servers": {"a": {"command": "x", "sandbox": "required"}}}, NONE, "broken"),
        ({"servers": {"a": {"command": "x"}}, "environment": "production"}, NONE, "broken"),
        ({"servers": {"a": {"command": "x", "sandbox": "auto"}}}, NONE, "warning"),
        ({"servers": {"a": {"command": "x"}}}, NONE, "off"),
        ({"servers": {"a": {"url": "https://x.example"}}, "environment": "production"}, NONE, "off"),
        ({"servers": {"a": {"command": "x", "sandbox": "required"}}}, WORKS, "ok"),
    ],
)
def test_a_sandbox_that_is_needed_must_work(
    tmp_path: Path, said: dict[str, Any], works: Works, status: str
) -> None:
    check = partial(sandbox, find=lambda: works, groups=dict, root=False)
    told = found(check, project(tmp_path, **said))["bubblewrap"]
    assert told.status == status
    assert bool(told.fix) == (works is NONE)


def test_limits_that_cannot_be_kept_are_told(tmp_path: Path) -> None:
    def limits(root: bool, groups: dict[str, Path]) -> str:  # noqa: FBT001
        check = partial(sandbox, find=lambda: WORKS, groups=lambda: groups, root=root)
        return found(check, project(tmp_path))["limits"].status

    assert limits(False, {}) == "ok"  # noqa: FBT003
    assert limits(True, {"pids": tmp_path}) == "ok"  # noqa: FBT003
    assert limits(True, {}) == "warning"  # noqa: FBT003


def test_the_mode_of_a_profile_is_that_of_its_servers(tmp_path: Path) -> None:
    profiles = {"p": {"executable": "/srv/x", "sandbox": "required"}}
    made = project(tmp_path, launch_profiles=profiles, servers={"a": {"launch": "p"}})
    check = partial(sandbox, find=lambda: NONE, groups=dict)
    assert statuses(found(check, made)) == {"bubblewrap": "broken"}


def test_the_files_of_a_profile_are_looked_at(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("")
    script.chmod(0o666)
    profiles = {
        "good": {"executable": os.path.realpath("/bin/true")},
        "gone": {"executable": "/srv/no-such-program"},
        "open": {"executable": os.path.realpath(sys.executable), "args": ["-I", str(script)]},
    }
    made = project(tmp_path, launch_profiles=profiles, servers={"a": {"launch": "open"}})
    told = found("profiles", made)
    assert statuses(told) == {"good": "ok", "gone": "warning", "open": "broken"}
    assert told["open"].said == f"{script} may be written to by others"
    assert "/srv/no-such-program cannot be opened" in told["gone"].said


def test_a_store_is_looked_at_and_not_made(tmp_path: Path) -> None:
    made = project(tmp_path, store="sqlite:///data/x.db")
    assert "not there yet" in found("store", made)["database"].said
    assert not (tmp_path / "data").exists()
    database = Database("sqlite:///data/x.db", tmp_path)
    SqlState(database).put("kind", "key", 1)
    database.close()
    assert "of this version" in found("store", made)["database"].said
    (tmp_path / "data" / "x.db").write_bytes(b"no database" * 100)
    assert found("store", made)["database"].status == "broken"


def test_a_store_that_can_never_be_used_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url, said in (
        ("sqlite:///${GONE}/x", "GONE is not set"),
        ("sqlite:///file/x.db", "is not a folder"),
    ):
        told = found("store", project(tmp_path, store=url))["database"]
        assert told.status == "broken"
        assert said in told.said


def test_a_key_beside_its_log_is_a_warning(tmp_path: Path) -> None:
    apart = project(tmp_path, audit={"key_file": "/elsewhere/key", "checkpoints": "/elsewhere/marks"})
    assert statuses(found("audit", apart)) == {"log": "ok", "key": "ok"}
    beside = project(tmp_path, audit={"key_file": "key", "sink": "store"})
    told = found("audit", beside)
    assert statuses(told) == {"log": "ok", "key": "warning"}
    assert str(tmp_path / "key") in told["key"].said


def test_references_are_counted_and_none_is_read(tmp_path: Path) -> None:
    env = {"A": "${THERE}", "B": "${GONE}", "C": "${file:/no/such/file}", "D": "${secret:x}"}
    made = project(tmp_path, servers={"a": {"command": "uvx", "args": ["x"], "env": env}})
    told = found("secrets", made, THERE="value")
    assert statuses(told) == {"env": "broken", "secret": "ok", "file": "ok"}
    assert told["env"].said == "not set: GONE"
    assert "a key file" in told["secret"].said
    assert "value" not in str(told)
    told = found("secrets", made, THERE="x", GONE="y", LUTHIER_SECRET_KEY="z")
    assert told["env"].status == "ok"
    assert "LUTHIER_SECRET_KEY" in told["secret"].said
    assert "holds something that is no key" in told["key"].said
    told = found("secrets", made, XDG_STATE_HOME=str(tmp_path / "state"))
    assert told["key"].status == "warning"
    assert "beside the store" in told["key"].said
    assert statuses(found("secrets", project(tmp_path))) == {"references": "off"}


def test_a_keyring_needs_its_package(tmp_path: Path) -> None:
    env = {"A": "${keyring:service/user}"}
    made = project(tmp_path, servers={"a": {"command": "uvx", "args": ["x"], "env": env}})
    assert statuses(found("secrets", made)) == {"keyring": "ok"}


def test_servers_are_judged_as_check_judges_them(tmp_path: Path) -> None:
    servers = {
        "good": {"command": "uvx", "args": ["x"]},
        "code": {"command": "python", "args": ["-c", "x"]},
        "literal": {"url": "https://x.example", "auth": {"type": "bearer", "token": "tok-literal"}},
        "off": {"command": "uvx", "args": ["x"], "disabled": True},
    }
    told = found("servers", project(tmp_path, servers=servers))
    assert statuses(told) == {"good": "ok", "code": "broken", "literal": "warning", "off": "off"}
    assert "`-c` of `python` is refused" in told["code"].said
    assert statuses(found("servers", project(tmp_path))) == {"registry": "off"}


def test_a_check_that_fails_is_a_finding_and_stops_no_other(tmp_path: Path) -> None:
    def failing(case: Case) -> Any:
        raise ZeroDivisionError("ouch")

    told = examine(project(tmp_path), ENVIRON, {"odd": failing, "servers": CHECKS["servers"]})
    assert told["odd"][0].status == "broken"
    assert "ZeroDivisionError: ouch" in told["odd"][0].said
    assert told["servers"][0].status == "off"


def test_a_log_that_cannot_be_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / ".luthier").write_text("")
    assert found("audit", project(tmp_path))["log"].status == "broken"


def test_a_project_in_memory_has_no_database(tmp_path: Path) -> None:
    assert statuses(found("store", msgspec.structs.replace(project(tmp_path), store=None))) == {
        "database": "off"
    }


def test_an_entry_of_a_store_that_cannot_be_used_is_broken(tmp_path: Path) -> None:
    made = msgspec.structs.replace(project(tmp_path), broken={"odd": SpecError([Fault("it is odd")])})
    told = found("servers", made)
    assert statuses(told) == {"odd": "broken"}
    assert "it is odd" in told["odd"].said


def offering(root: Path, trigger: str) -> None:
    (root / "ensembles").mkdir()
    steps = "agents: [{name: a, operation: transform, config: {value: 1}}]\n"
    (root / "ensembles" / "e.yaml").write_text(f"trigger: {trigger}\n{steps}")
    (root / "ensembles" / "bad.yaml").write_text("a: 1\n")


def test_where_nothing_is_offered_nothing_listens(tmp_path: Path) -> None:
    assert statuses(found("listeners", project(tmp_path))) == {"serve": "off"}


def test_what_is_offered_to_nobody_is_a_warning(tmp_path: Path) -> None:
    offering(tmp_path, "{type: mcp}")
    told = found("listeners", project(tmp_path))
    assert statuses(told) == {"serve": "ok", "tokens": "warning"}
    assert "--new-token" in told["tokens"].fix


def test_who_comes_with_a_token_of_an_issuer_is_known(tmp_path: Path) -> None:
    offering(tmp_path, "{type: http, public: true}")
    oauth = {"issuer": "https://id.example.com", "resource": "https://tools.example.com/mcp"}
    told = found("listeners", project(tmp_path, serve={"oauth": oauth}))
    assert statuses(told) == {"serve": "ok", "tokens": "ok", "public": "warning"}
    assert told["tokens"].said == "0, of 0 clients, and those of https://id.example.com"
    assert "whoever reaches the address" in told["public"].said


def test_what_opens_an_address_must_have_a_value(tmp_path: Path) -> None:
    offering(tmp_path, "[{type: api}, {type: http, auth: {type: basic, secret: '${env.OWN}'}}]")
    served = project(tmp_path, serve={"clients": {"ci": "${env.CI}"}})
    assert found("listeners", served, CI="x")["tokens"].said == "not set: OWN"


def test_every_token_must_have_a_value(tmp_path: Path) -> None:
    offering(tmp_path, "{type: mcp, auth: {token: '${env.OWN}'}}")
    served = project(tmp_path, serve={"clients": {"ci": ["${env.CI}", "sha256:" + "0" * 64], "idle": []}})
    told = found("listeners", served, CI="x")
    assert (told["tokens"].status, told["tokens"].said) == ("broken", "not set: OWN")
    told = found("listeners", served, CI="x", OWN="y")
    assert (told["tokens"].status, told["tokens"].said) == ("ok", "3, of 2 clients")
