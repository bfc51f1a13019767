"""What the servers made with either framework offer: the tools of the contract.

Annotations are evaluated here, as the frameworks look at them when a tool is made.
"""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel


class Sum(BaseModel):
    """What `add` gives."""

    total: int
    terms: list[int]


def offer(server: Any, context: type[Any], failure: type[Exception], notes: Path) -> None:
    """Put the tools on a server. What happens to `wait` is written to the file `notes`."""

    def echo(text: str) -> str:
        """Give the text back."""
        return text

    def add(a: int, b: int = 0) -> Sum:
        """Add two numbers."""
        return Sum(total=a + b, terms=[a, b])

    def fail() -> str:
        """Fail with words for whoever called."""
        message = "the disk is full"
        raise failure(message)

    def big(size: int) -> str:
        """Give a text of that many characters."""
        return "x" * size

    async def steps(times: int, ctx: context) -> str:  # type: ignore[valid-type]
        """Report progress so many times."""
        for n in range(times):
            await ctx.report_progress(n + 1, times, f"step {n + 1}")  # type: ignore[attr-defined]
        return "done"

    async def wait(name: str) -> str:
        """Wait until cancelled, and note it under that name."""
        note(f"waiting {name}")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note(f"cancelled {name}")
            raise
        return "waited"

    def note(what: str) -> None:
        with notes.open("a") as file:
            file.write(f"{what}\n")

    for tool in (echo, add, fail, big, steps, wait):
        server.tool()(tool)
