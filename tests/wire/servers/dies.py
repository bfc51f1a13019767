"""A server that says why on stderr and exits at start: dies.py STATUS [LINES]."""

from __future__ import annotations

import sys

for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    sys.stderr.write(f"line {number}: no such database\n")
sys.exit(int(sys.argv[1]))
