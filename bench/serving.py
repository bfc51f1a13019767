"""What one hop costs: `luthier serve --http` and FastMCP's proxies in front of the same server by HTTP.

The same bare client calls the server directly and through each of them, in turns; what a hop adds is its
median less the direct one. CPU is that of the process in the middle. It speaks the revision of 2025-11-25;
Luthier is also asked in that of 2026-07-28, and for an ensemble of one step in place of the tool.

usage: serving.py [ROUNDS]
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contest import ENVIRONMENTS, HERE, OWN, Contender, echo_servers, machine, rounds

if TYPE_CHECKING:
    from collections.abc import Iterator

FASTMCP = ENVIRONMENTS / "fastmcp"
GOALS = {"fastmcp": (0.1, 20), "fastmcp, shared client": (0.6, 2)}
SINGLY, AT_ONCE, CALLS = "seq 60", "many 16 160", 160


OLD, NEW = "2025-11-25", "2026-07-28"
WAYS = {
    "luthier": (OLD, "echo"),
    "luthier, 2026-07-28": (NEW, "echo"),
    "luthier, an ensemble": (OLD, "one"),
    "luthier, both": (NEW, "one"),
}
ENSEMBLE = {
    "ensemble": "one",
    "trigger": {"type": "mcp"},
    "inputs": {"text": {"type": "string", "required": True}},
    "agents": [{"name": "echo", "operation": "tools", "config": {"mcp": "up", "tool": "echo"}}],
    "outputs": "${echo.output}",
}


class Hop(NamedTuple):
    """A process in the middle, where it answers, and the token that it asks for."""

    process: subprocess.Popen[str]
    url: str
    token: tuple[str, ...] = ()

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@contextlib.contextmanager
def started(port: int, *command: str | Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A process that listens there; it is told to end, and waited for."""
    words = [str(word) for word in command]
    with subprocess.Popen(
        words, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | env
    ) as process:
        try:
            until = time.monotonic() + 60
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"does not listen: {' '.join(words)}")
                time.sleep(0.1)
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def hops(upstream: str) -> Iterator[dict[str, Hop]]:
    """All who stand in the middle, by name."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, kind in (("fastmcp", "default"), ("fastmcp, shared client", "shared")):
            port = free_port()
            script = HERE / "servers" / "fastmcp_proxy.py"
            python = FASTMCP / "bin" / "python"
            process = stack.enter_context(started(port, python, script, kind, upstream, str(port)))
            found[name] = Hop(process, f"http://127.0.0.1:{port}/mcp")
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        project = {
            "mcpServers": {"up": {"url": upstream, "transport": "http"}},
            "serve": {"clients": {"bench": ["${env.BENCH_TOKEN}"]}, "tools": {"echo": "mcp://up/echo"}},
        }
        (root / "ensembles").mkdir()
        (root / "ensembles" / "one.yaml").write_text(json.dumps(ENSEMBLE))
        (root / "luthier.yaml").write_text(json.dumps(project))
        port, token = free_port(), secrets.token_urlsafe(32)
        command = (
            OWN,
            "-m",
            "luthier",
            "--project",
            root / "luthier.yaml",
            "serve",
            "--http",
            f"127.0.0.1:{port}",
        )
        process = stack.enter_context(started(port, *command, BENCH_TOKEN=token))
        for name in WAYS:
            found[name] = Hop(process, f"http://127.0.0.1:{port}/mcp", (token,))
        yield found


def measured(number: int) -> None:
    with echo_servers() as [upstream], hops(upstream) as found:
        script = HERE / "contenders" / "hop.py"
        direct = Contender("direct", OWN, script, upstream, OLD, "echo")
        through = [
            Contender(name, OWN, script, hop.url, *WAYS.get(name, (OLD, "echo")), *hop.token)
            for name, hop in found.items()
        ]
        print(machine())
        singly = rounds([direct, *through], SINGLY, number)
        at_once = rounds([direct, *through], AT_ONCE, number)
        cpu = {}
        for one in through:
            before = found[one.name].cpu
            rounds([one], AT_ONCE, number)
            cpu[one.name] = (found[one.name].cpu - before) / (number * CALLS) * 1e6
        for one in (direct, *through):
            one.quit()
    p50 = {name: statistics.median(one["p50"] * 1e6 for one in taken) for name, taken in singly.items()}
    rate = {name: statistics.median(t["calls"] / t["wall"] for t in taken) for name, taken in at_once.items()}
    print(
        f"{'':24} {'us p50':>7} {'added':>7} {'calls/s at 16':>14} {'CPU us':>8}"
        "   luthier: added      calls/s     CPU"
    )
    for name, half in p50.items():
        added = half - p50["direct"]
        line = f"{name:24} {half:7.0f} {added:7.0f} {rate[name]:14.0f} {cpu.get(name, 0):8.0f}"
        if name in GOALS:
            less, more = GOALS[name]
            ours = (p50["luthier"] - p50["direct"]) / added
            faster, cheaper = rate["luthier"] / rate[name], cpu["luthier"] / cpu[name]
            line += f"   {ours:6.2f}x (≤ {less}x) {faster:6.1f}x (≥ {more}x) {cheaper:5.2f}x"
        print(line)
    print("medians of", number, "rounds;", machine())


def main() -> None:
    if not (FASTMCP / "ready").exists():
        raise SystemExit("run `sh bench/setup` first: it makes the peers' environments")
    measured(int(sys.argv[1]) if len(sys.argv) > 1 else 7)


main()
