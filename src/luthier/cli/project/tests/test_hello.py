"""Plays the ensemble against its real server. Run with pytest, from anywhere."""

import asyncio
from pathlib import Path

from luthier import Runtime

PROJECT = Path(__file__).parents[1] / "luthier.yaml"


def test_hello_greets_by_name():
    async def play():
        async with Runtime.open(PROJECT) as rt:
            return await rt.run("hello", name="Ada")

    run = asyncio.run(play())
    assert run.success
    assert run.output == {"greeting": "Hello, Ada", "shouted": "HELLO, ADA!"}
