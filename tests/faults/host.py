"""A host in a process of its own: puts one server up, makes a call, and then hangs or forgets to close.

`python -m tests.faults.host run|forget MODE [ARGUMENT…]`; the environment is that of a bench's server.
`run` is what our commands are like: SIGINT or SIGTERM cancels it, and it stops what it started.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from luthier import Runtime
from tests.faults.bench import MARK, Bench

FOREVER = 300


async def stand(how: str, bench: Bench) -> None:
    rt = Runtime.open({"mcpServers": {"faulty": bench.fields()}}, root=bench.root)
    if how == "forget":
        await rt.call("mcp://faulty/echo")
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    got: list[int] = []

    def stop(number: int) -> None:
        got.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        async with rt:
            await rt.call("mcp://faulty/echo")
            await asyncio.sleep(FOREVER)
    except asyncio.CancelledError:
        sys.exit(128 + got[0])


def main() -> None:
    signal.signal(
        signal.SIGHUP, signal.SIG_DFL
    )  # who runs the tests under nohup ignores it, and passes that on
    how, mode, *arguments = sys.argv[1:]
    bench = Bench(Path(os.environ["FAULTY_ROOT"]), mode, tuple(arguments), mark=os.environ[MARK])
    asyncio.run(stand(how, bench))


if __name__ == "__main__":
    main()
