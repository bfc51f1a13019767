"""`luthier serve` in the hands of MCP Inspector's command line: in both eras, over HTTP and over pipes.

`python -m tests.conformance.inspected INSPECTOR URL PROJECT` prints a line for each thing tried, and ends
with status 1 if one of them failed. The address and the project are those that `served` prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INSPECTOR, URL, PROJECT = sys.argv[1], sys.argv[2], Path(sys.argv[3])
BOUND = 60.0
TOOL_ERROR = 5
"""How Inspector ends where a tool says `isError`."""

CALL = ("--method", "tools/call", "--tool-name")


def command(way: str, era: str, *words: str) -> list[str]:
    over_pipes = ("--config", str(config()), "--server", "luthier")
    target = (URL, "--transport", "http") if way == "http" else over_pipes
    return [INSPECTOR, "--cli", *target, "--protocol-era", era, *words]


def config() -> Path:
    """The file by which Inspector starts the project over pipes."""
    path = PROJECT.parent / "inspector.json"
    args = ["-m", "luthier", "serve", "--stdio"]
    entry = {"command": sys.executable, "args": args, "cwd": str(PROJECT), "env": {"SUITE_TOKEN": "none"}}
    path.write_text(json.dumps({"mcpServers": {"luthier": entry}}), encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    """Inspector keeps what it knows below a home of its own."""
    return {**os.environ, "HOME": str(PROJECT.parent)}


def inspected(way: str, era: str, *words: str) -> tuple[int, Any]:
    done = subprocess.run(
        command(way, era, *words),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        cwd=PROJECT,
        env=environment(),
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, done.stdout + done.stderr


def lists(way: str, era: str) -> bool:
    status, found = inspected(way, era, "--method", "tools/list")
    tools = {tool["name"]: tool for tool in found["tools"]}
    return status == 0 and tools["greeting"]["outputSchema"]["required"] == ["said"]


def calls(way: str, era: str) -> bool:
    status, found = inspected(way, era, *CALL, "greeting", "--tool-arg", "name=Ada")
    return status == 0 and found["structuredContent"] == {"said": "Hello, Ada!"} and "_meta" in found


def errs(way: str, era: str) -> bool:
    status, found = inspected(way, era, *CALL, "test_error_handling")
    return status == TOOL_ERROR and found["isError"] is True


def progresses(way: str, era: str) -> bool:
    status, found = inspected(way, era, *CALL, "test_tool_with_progress")
    return status == 0 and found["content"][0]["text"] == "Done."


def reads(way: str, era: str) -> bool:
    status, found = inspected(way, era, "--method", "resources/read", "--uri", "test://template/123/data")
    return status == 0 and '"id":"123"' in found["contents"][0]["text"]


def prompts(way: str, era: str) -> bool:
    words = ("--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments")
    status, found = inspected(way, era, *words, "--prompt-args", "arg1=a", "arg2=b")
    return status == 0 and "arg1='a', arg2='b'" in found["messages"][0]["content"]["text"]


def gives_up(way: str, era: str) -> bool:
    """Whoever goes away in the middle has its call called off; the tool writes that down."""
    begun, over = PROJECT / "begun", PROJECT / "called_off"
    begun.unlink(missing_ok=True)
    over.unlink(missing_ok=True)
    process = subprocess.Popen(
        command(way, era, *CALL, "test_never_ends"),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        there = waited_for(begun)
        process.terminate()
    return there and waited_for(over)


def waited_for(file: Path) -> bool:
    until = time.monotonic() + BOUND
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return file.exists()


ALL = {
    "http": (lists, calls, errs, progresses, reads, prompts, gives_up),
    "pipes": (lists, calls, errs, gives_up),
}


def tried() -> Iterator[tuple[str, str, Callable[[str, str], bool]]]:
    for way, each in ALL.items():
        for era in ("legacy", "modern"):
            yield from ((way, era, one) for one in each)


def main() -> int:
    failed = 0
    for way, era, one in tried():
        try:
            good = one(way, era)
        except (KeyError, IndexError, TypeError, subprocess.TimeoutExpired) as error:
            good = False
            sys.stdout.write(f"        {error!r}\n")
        failed += not good
        sys.stdout.write(f"{'passed' if good else 'FAILED'}  inspector  {way} {era}  {one.__name__}\n")
        sys.stdout.flush()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
