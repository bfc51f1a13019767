"""Eleven things that a hostile server tries, each by itself: prints as JSON which of them it could do.

Run inside a sandbox by the inmate, and without one as `python probes.py GIVEN`, for the control.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROBES: dict[str, Callable[[dict[str, Any]], bool]] = {}

Probe = Callable[[dict[str, Any]], bool]


def probe(function: Probe) -> Probe:
    PROBES[function.__name__] = function
    return function


@probe
def read_a_planted_secret(given: dict[str, Any]) -> bool:
    return str(given["canary"]) in Path(given["secret_file"]).read_text()


@probe
def read_the_shadow_file(_given: dict[str, Any]) -> bool:
    return bool(Path("/etc/shadow").read_text())


@probe
def write_to_the_system(_given: dict[str, Any]) -> bool:
    return os.access("/usr/bin", os.W_OK) and os.statvfs("/usr").f_flag & os.ST_RDONLY == 0


@probe
def write_where_the_host_sees_it(given: dict[str, Any]) -> bool:
    Path(given["drop"]).parent.mkdir(parents=True, exist_ok=True)
    Path(given["drop"]).write_text("x")
    return Path(given["secret_file"]).is_file()  # else it wrote into a folder of its own


@probe
def reach_the_loopback_of_the_host(given: dict[str, Any]) -> bool:
    with socket.create_connection(("127.0.0.1", given["port"]), timeout=3):
        return True


@probe
def reach_an_abstract_socket_of_the_host(given: dict[str, Any]) -> bool:
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(f"\0{given['abstract']}")
        return True


@probe
def find_a_way_out(_given: dict[str, Any]) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect(("192.0.2.1", 9))  # sends nothing: is there a route?
        return True


@probe
def signal_a_process_of_the_host(given: dict[str, Any]) -> bool:
    os.kill(given["pid"], 0)
    return str(given["cmdline"]) in Path(f"/proc/{given['pid']}/cmdline").read_text()  # not another


@probe
def read_the_environment_of_another(given: dict[str, Any]) -> bool:
    return any(
        given["canary"].encode() in (entry / "environ").read_bytes()
        for entry in Path("/proc").iterdir()
        if entry.name == str(given["pid"])
    )


@probe
def inherit_a_secret(given: dict[str, Any]) -> bool:
    return given["canary"] in os.environ.values()


@probe
def make_a_namespace_of_its_own(_given: dict[str, Any]) -> bool:
    child = os.fork()
    if child == 0:
        new_user = 0x10000000
        os._exit(0 if ctypes.CDLL(None).unshare(new_user) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def done(given: dict[str, Any]) -> dict[str, bool]:
    found = {}
    for name, function in PROBES.items():
        try:
            found[name] = function(given)
        except OSError:
            found[name] = False
    return found


if __name__ == "tried":
    print(json.dumps([done(globals()["given"])]))  # noqa: T201
elif __name__ == "__main__":
    print(json.dumps([done(json.loads(sys.argv[1]))]))  # noqa: T201
