"""The wire: JSON-RPC to MCP servers of every revision, over pipes and in memory."""

from luthier.wire.behaviour import Bytes, Delay, Drop, Fail, Hang, Progress, Result
from luthier.wire.era import (
    HANDSHAKE_VERSIONS,
    KNOWN_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    MODERN_VERSIONS,
    Era,
)
from luthier.wire.memory import MemoryServer, MemoryTransport
from luthier.wire.negotiate import Leave, open_session
from luthier.wire.peer import Handlers
from luthier.wire.process import kill_all_groups
from luthier.wire.session import Session
from luthier.wire.stdio import StdioLaunch, StdioTransport
from luthier.wire.transport import Outgoing, Receiver, Transport

__all__ = [
    "HANDSHAKE_VERSIONS",
    "KNOWN_VERSIONS",
    "LATEST_HANDSHAKE",
    "LATEST_MODERN",
    "MODERN_VERSIONS",
    "Bytes",
    "Delay",
    "Drop",
    "Era",
    "Fail",
    "Handlers",
    "Hang",
    "Leave",
    "MemoryServer",
    "MemoryTransport",
    "Outgoing",
    "Progress",
    "Receiver",
    "Result",
    "Session",
    "StdioLaunch",
    "StdioTransport",
    "Transport",
    "kill_all_groups",
    "open_session",
]
