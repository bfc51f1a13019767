"""A server in a sandbox of its own: what it sees of the machine, what it may use, and that all of it ends.

The sandbox is bubblewrap's. A server sees the system's programs, its own interpreter and script, and what its
entry names; nothing else of the file system, no process but its own, and no network unless it is given ours.
"""

from luthier.connect.sandbox.bubblewrap import Box, Works, command_line, filter_file, working
from luthier.connect.sandbox.limits import Limits, cgroup, limits_of
from luthier.connect.sandbox.mounts import Mounts, UnfitMountError, mounts_of

__all__ = [
    "Box",
    "Limits",
    "Mounts",
    "UnfitMountError",
    "Works",
    "cgroup",
    "command_line",
    "filter_file",
    "limits_of",
    "mounts_of",
    "working",
]
