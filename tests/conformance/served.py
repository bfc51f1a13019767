"""The server under test of the conformance suite: the project beside this file, by `luthier serve`.

`python -m tests.conformance.served` copies the project, serves it, and prints the address of a small proxy in
front of it that adds the token, because the suite has none to send, and the copy. It ends when stdin does.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

PROJECT = Path(__file__).parent / "project"
TOKEN = secrets.token_urlsafe(32)
END = b"\r\n\r\n"


class Proxy:
    """Adds the token to each request, and nothing else. A connection is for one request."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(END)
            inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        first, *lines = head.removesuffix(END).split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        added = [b"Connection: close", b"Authorization: Bearer " + TOKEN.encode()]
        outer.write(b"\r\n".join([first, *kept, *added]) + END)
        forth = asyncio.create_task(passed(reader, outer))
        back = asyncio.create_task(passed(inner, writer))
        await asyncio.wait([forth, back], return_when=asyncio.FIRST_COMPLETED)
        for one in (writer, outer):  # whoever went away, the other side is told
            one.close()
        await asyncio.gather(forth, back)


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def served(folder: Path) -> None:
    project = folder / "project"
    shutil.copytree(PROJECT, project)
    proxy = Proxy(0)
    listening = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    file = project / "luthier.yaml"
    hosts = f'  hosts: ["127.0.0.1:{port}", "localhost:{port}"]\n'
    file.write_text(file.read_text(encoding="utf-8") + hosts, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "luthier", "serve", "--http", "127.0.0.1:0"),
        cwd=project,
        env={**os.environ, "SUITE_TOKEN": TOKEN},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        proxy.port = await port_of(process.stderr)
        told = asyncio.create_task(passed_on(process.stderr))
        sys.stdout.write(f"http://127.0.0.1:{port}/mcp {project}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        told.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def port_of(stderr: asyncio.StreamReader) -> int:
    """Where the server says that it listens."""
    while line := (await stderr.readline()).decode():
        if line.startswith("serving at "):
            return int(line.strip().removesuffix("/mcp").rpartition(":")[2])
        sys.stderr.write(line)
    raise SystemExit("luthier serve did not start")


async def passed_on(stderr: asyncio.StreamReader) -> None:
    while line := await stderr.readline():
        sys.stderr.write(line.decode(errors="replace"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(served(Path(made)))
