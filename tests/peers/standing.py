"""Servers by HTTP in processes of their own, which stand while a module's tests run."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVERS = Path(__file__).parent / "servers"
START = 30.0
"""Seconds within which a server listens, on a slow machine."""


@contextmanager
def standing(command: list[str], port: int, *, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """The process while it listens at that port."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env) as process:
        try:
            end = time.monotonic() + START
            while not listens(port):
                assert process.poll() is None, f"{command[:3]} ended with {process.returncode}"
                assert time.monotonic() < end, f"{command[:3]} does not listen"
            yield process.pid
        finally:
            process.kill()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        # Nothing to wait on but the clock: let it have the processor meanwhile.
        time.sleep(0.02)
        return False
    return True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
