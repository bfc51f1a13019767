"""A governed call by HTTP against the peers' bare ones: CPU a call, calls a second at 64.

usage: http_calls.py [PEER…]
"""

from __future__ import annotations

from contest import contest, echo_servers

with echo_servers() as [url]:
    contest(url, alone=500, crowd=1600, number=7)
