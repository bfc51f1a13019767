"""Contenders as processes, asked in turns, so that a round's figures are taken under like conditions."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
OWN = Path(sys.executable)
ENVIRONMENTS = HERE.parent / ".bench"
OFFICIAL = ENVIRONMENTS / "official" / "bin" / "python"
PEERS = {
    "official": "official.py",
    "fastmcp": "fastmcp_client.py",
    "langchain": "langchain_tool.py",
    "pydantic-ai": "pydantic_toolset.py",
    "openai-agents": "openai_agents.py",
    "mcp-use": "mcp_use_session.py",
}
"""The scripts that make bare calls, by the environment that `bench/setup` makes for each."""


QUIET = os.environ | {"MCP_USE_ANONYMIZED_TELEMETRY": "false", "DO_NOT_TRACK": "1"}


class Contender:
    """One worker process; `ask` gives it a command and waits for its line."""

    def __init__(self, name: str, *command: str | Path, **env: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=QUIET | env,
        )
        self._lines = iter(self._process.stdout or ())
        self._line()

    def ask(self, command: str) -> dict[str, float]:
        print(command, file=self._process.stdin, flush=True)
        return self._line()

    def quit(self) -> None:
        print("quit", file=self._process.stdin, flush=True)
        self._process.wait(30)

    def _line(self) -> dict[str, float]:
        line = next(self._lines, "")
        if not line:
            raise SystemExit(f"{self.name} ended with status {self._process.wait(30)}")
        answer: dict[str, float] = json.loads(line)
        return answer


def rounds(contenders: list[Contender], command: str, number: int) -> dict[str, list[dict[str, float]]]:
    """Ask every contender once a round, each round in another order."""
    shuffled = random.Random(7)  # noqa: S311  (an order, not a secret)
    taken: dict[str, list[dict[str, float]]] = {one.name: [] for one in contenders}
    for _ in range(number):
        for one in shuffled.sample(contenders, len(contenders)):
            taken[one.name].append(one.ask(command))
    return taken


@contextlib.contextmanager
def echo_servers(count: int = 1) -> Iterator[list[str]]:
    """One process that answers by HTTP at so many addresses."""
    command = [sys.executable, str(HERE / "servers" / "echo_http.py"), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [next(iter(process.stdout or ())).strip() for _ in range(count)]
        finally:
            process.terminate()


def callers(where: str | Path) -> list[Contender]:
    """All who make calls to the server there: a script, spoken to over pipes, or a URL. Ours is the last."""
    parser = argparse.ArgumentParser()
    parser.add_argument("peers", nargs="*", choices=[*PEERS, []], help="only these; all without")
    only = parser.parse_args().peers or list(PEERS)
    folder = HERE / "contenders"
    peers = [
        Contender(name, ENVIRONMENTS / name / "bin" / "python", folder / PEERS[name], where)
        for name in only
        if (ENVIRONMENTS / name / "ready").exists()
    ]
    return [*peers, Contender("governed", OWN, folder / "governed.py", where)]


def contest(where: str | Path, *, alone: int, crowd: int, number: int) -> None:
    """Calls one by one and 64 at once, in so many rounds; prints what each costs, and ours as ratios."""
    require_peers()
    contenders = callers(where)
    print(machine())
    singly = rounds(contenders, f"seq {alone}", number)
    at_once = rounds(contenders, f"many 64 {crowd}", number)
    for one in contenders:
        one.quit()
    cpu = {
        name: statistics.median(t["cpu"] / t["calls"] * 1e6 for t in taken) for name, taken in singly.items()
    }
    rate = {name: statistics.median(t["calls"] / t["wall"] for t in taken) for name, taken in at_once.items()}
    print(f"{'':14} us CPU a call   calls/s at 64   governed: CPU   calls/s")
    for name, spent in cpu.items():
        cheaper, faster = cpu["governed"] / spent, rate["governed"] / rate[name]
        print(f"{name:14} {spent:13.0f}   {rate[name]:13.0f}   {cheaper:12.2f}x   {faster:6.2f}x")


def machine() -> str:
    """How long a fixed piece of work takes here now, in milliseconds: the measure of the machine's mood."""
    spins = []
    for _ in range(5):
        start = time.perf_counter()
        sum(range(300_000))
        spins.append((time.perf_counter() - start) * 1000)
    return f"spin {statistics.median(spins):.1f} ms (worst {max(spins):.1f})"


def require_peers() -> None:
    if not OFFICIAL.exists():
        raise SystemExit("run `sh bench/setup` first: it makes the peers' environments")
