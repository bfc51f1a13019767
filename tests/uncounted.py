"""The environment for an interpreter in which coverage is not counted.

It is for those whose modules or time are looked at, and for those with an audit hook: up to Python 3.11 a
hook written in Python may keep a thread that begins just then from being counted, and end it for that.
"""

from __future__ import annotations

import os


def uncounted() -> dict[str, str]:
    """What the tests' own interpreter has around it, without what makes coverage count."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
