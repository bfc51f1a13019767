"""A host of one server, to be killed: host.py HOW HABIT...

It prints the server's group, the watchdog's process and the process of its fork, if any.

How: `wait` goes on until it is killed, `leave` ends without closing, `kill` calls kill_all_groups and waits,
`fork` leaves a forked child behind and waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from luthier.clock import SystemClock
from luthier.wire import StdioLaunch, StdioTransport, kill_all_groups, open_session
from luthier.wire.watchdog import WATCHDOG


async def main(how: str, habits: list[str]) -> None:
    clock = SystemClock()
    plain = str(Path(__file__).parent / "plain.py")
    launch = StdioLaunch(server="s", argv=(sys.executable, plain, *habits), env={"PATH": os.environ["PATH"]})
    session = await open_session(lambda: StdioTransport(launch, clock), server="s", clock=clock, timeout=20.0)
    where = (await session.call_tool("where", {}, timeout=20.0)).content
    fork = os.fork() if how == "fork" else -1
    if fork == 0:
        time.sleep(600)  # noqa: ASYNC251  (the fork has no loop to block)
    print(where.split()[1], WATCHDOG.pid, fork, flush=True)  # noqa: T201  (what the test reads)
    if how == "kill":
        kill_all_groups()
    if how != "leave":
        await asyncio.sleep(600)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
