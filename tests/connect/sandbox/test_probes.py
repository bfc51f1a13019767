"""Eleven hostile probes from inside a sandboxed server: none works, and each of them works outside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier.spec import Launch, LaunchProfile, Sandbox, ServerEntry
from tests.connect.sandbox.cell import SERVER, cell, inmate, needs_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = needs_sandbox

PROBES = Path(__file__).with_name("probes.py")
CANARY = "canary-3f1c"
OF_ROOT = {"read_the_shadow_file", "write_to_the_system"}
OF_THE_NETWORK = {
    "reach_the_loopback_of_the_host",
    "reach_an_abstract_socket_of_the_host",
    "find_a_way_out",
}


@contextmanager
def scene(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A machine with things worth having: a secret file, listeners, and a process that holds a secret."""
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    abstract = f"luthier-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        subprocess.Popen(
            [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "SECRET": CANARY},
        ) as victim,
    ):
        assert victim.stdout is not None
        victim.stdout.readline()  # it is what it is to be
        unix.bind(f"\0{abstract}")
        unix.listen()
        yield {
            "canary": CANARY,
            "secret_file": str(secret),
            "drop": str(tmp_path / "drop"),
            "port": tcp.getsockname()[1],
            "abstract": abstract,
            "pid": victim.pid,
            "cmdline": Path(f"/proc/{victim.pid}/cmdline").read_text(),
        }
        victim.communicate()


def succeeded(text: str) -> set[str]:
    [found] = json.loads(text)
    assert len(found) == 11
    return {name for name, could in found.items() if could}


def outside(given: dict[str, Any]) -> set[str]:
    done = subprocess.run(
        [sys.executable, str(PROBES), json.dumps(given)],
        env={**os.environ, "SECRET": CANARY},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return succeeded(done.stdout)


def profiled(network: Any = None) -> tuple[ServerEntry, dict[str, LaunchProfile]]:
    profile = LaunchProfile(
        name="inmate",
        executable=sys.executable,
        args=("-I", str(SERVER)),
        sandbox=Sandbox(network=network),
    )
    entry = ServerEntry(id="inmate", launch=Launch(profile="inmate"), max_retries=0)
    return entry, {"inmate": profile}


async def test_of_eleven_hostile_probes_none_succeeds_in_production(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    entry, profiles = profiled()
    with scene(tmp_path) as given:
        control = outside(given)
        (tmp_path / "drop").unlink()
        async with cell(
            entry, environment="production", launch_profiles=profiles, environ={"SECRET": CANARY}
        ) as made:
            inside = succeeded(await made.try_(PROBES.read_text(), given=given))
        figure(f"G4: {len(inside)} of 11 hostile probes succeed (without a sandbox {len(control)})")
        assert inside == set()
        assert not (tmp_path / "drop").exists()
        missing = set() if os.geteuid() == 0 else OF_ROOT
        assert len(control | missing) == 11


async def test_the_network_of_the_host_is_all_that_it_opens(tmp_path: Path) -> None:
    entry = inmate(sandbox=Sandbox(mode="required", network="host"))
    with scene(tmp_path) as given:
        async with cell(entry, environ={"SECRET": CANARY}) as made:
            inside = succeeded(await made.try_(PROBES.read_text(), given=given))
    assert inside <= OF_THE_NETWORK
    assert "reach_the_loopback_of_the_host" in inside


async def test_nobody_runs_in_it_and_may_nothing() -> None:
    code = (
        "print(__import__('os').getuid(), [l for l in open('/proc/self/status') if l.startswith('CapEff')])"
    )
    async with cell(inmate(sandbox=Sandbox(mode="required"))) as made:
        said = await made.try_(code)
    assert said == r"65534 ['CapEff:\t0000000000000000\n']"
