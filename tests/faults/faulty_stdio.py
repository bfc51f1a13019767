"""An MCP server on pipes that misbehaves on request: `python -m tests.faults.faulty_stdio MODE [ARGUMENT…]`.

Plain Python, and nothing of it is a pretence: processes die, pipes fill, children are left behind. A mode
is one fault set up on the well-behaved server of peer.py; its sentence says what in the world it imitates.
`echo` and `pid` work as they should in every mode, to show that a session has survived.
"""

from __future__ import annotations

import sys

from tests.faults.modes import answers, calls, eras, framing, hosts, lists, lives
from tests.faults.modes.mode import MODES
from tests.faults.peer import Peer

__all__ = ["answers", "calls", "eras", "framing", "hosts", "lists", "lives", "main"]


def main() -> None:
    name, *arguments = sys.argv[1:]
    peer = Peer(arguments)
    MODES[name](peer)
    peer.serve()


if __name__ == "__main__":
    main()
