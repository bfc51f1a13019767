"""A governed call over pipes against the peers' bare ones: CPU a call, calls a second at 64.

usage: calls.py [PEER…]
"""

from __future__ import annotations

from contest import HERE, contest

contest(HERE / "servers" / "echo.py", alone=1000, crowd=3200, number=9)
