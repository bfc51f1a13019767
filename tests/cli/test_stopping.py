"""Signals: the first winds down in order, the second kills; nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from luthier.govern import AuditPlaces, verify
from luthier.spec import load_project
from tests.ended import gone

if TYPE_CHECKING:
    from pathlib import Path

BOUND = 20.0

# Answers like the greeter, but a call writes the process id to a pipe and never ends.
STUCK = """
import json, os, signal, sys, time
{extra}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {{"jsonrpc": "2.0", "id": request["id"]}}
    if request["method"] == "initialize":
        info = {{"name": "stuck", "version": "1"}}
        able = {{"tools": {{}}}}
        reply["result"] = {{"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}}
    elif request["method"] == "tools/list":
        reply["result"] = {{"tools": [{{"name": "greet", "inputSchema": {{"type": "object"}}}}]}}
    elif request["method"] == "tools/call":
        with open("called", "w") as pipe:
            pipe.write(str(os.getpid()))
        continue
    else:
        reply["error"] = {{"code": -32601, "message": "no such method"}}
    print(json.dumps(reply), flush=True)
{after}
"""


def stuck(project: Path, *, extra: str = "", after: str = "") -> subprocess.Popen[str]:
    os.mkfifo(project / "called")
    (project / "servers" / "greeter.py").write_text(STUCK.format(extra=extra, after=after))
    return subprocess.Popen(
        [sys.executable, "-m", "luthier", "run", "hello"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def server_pid(project: Path) -> int:
    """The process that the call has reached; waits until it has."""
    return int((project / "called").read_text())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_servers_and_exits_with_its_status(
    project: Path, number: signal.Signals, status: int
) -> None:
    process = stuck(project)
    pid = server_pid(project)
    process.send_signal(number)
    out, err = process.communicate(timeout=BOUND)
    assert process.returncode == status
    assert out == ""
    assert "Traceback" not in err
    assert gone(pid, BOUND)


def test_after_an_interrupt_the_audit_log_is_whole_and_says_cancelled(project: Path) -> None:
    process = stuck(project)
    server_pid(project)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=BOUND)
    places = AuditPlaces(load_project(project / "luthier.yaml"), os.environ)
    trail = verify(places.segments, places.key(), places.checkpoints)
    assert (trail.faults, trail.torn) == ((), ())
    assert [getattr(record, "outcome", None) for record in trail.records][-1] == "cancelled"


def test_the_second_signal_kills_a_server_that_will_not_go(project: Path) -> None:
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    process = stuck(project, extra=stubborn, after="while True: time.sleep(60)")
    pid = server_pid(project)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    while "once more" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert gone(pid, BOUND)
