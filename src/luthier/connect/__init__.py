"""Connections to servers: what may be reached and how, one owner for each, and the manager over them."""

from luthier.connect.defaults import register_default_mcp_servers
from luthier.connect.learned import Learned, Lesson, MemoryLearned, StoredLearned, take_over
from luthier.connect.manager import ConnectionManager
from luthier.connect.registry import ServerRegistry
from luthier.connect.report import ServerReport
from luthier.connect.state import AsideState, MemoryState, OwnState, StateStore
from luthier.connect.stores import MemoryServers, Servers, ServerStore, YamlServers

__all__ = [
    "AsideState",
    "ConnectionManager",
    "Learned",
    "Lesson",
    "MemoryLearned",
    "MemoryServers",
    "MemoryState",
    "OwnState",
    "ServerRegistry",
    "ServerReport",
    "ServerStore",
    "Servers",
    "StateStore",
    "StoredLearned",
    "YamlServers",
    "register_default_mcp_servers",
    "take_over",
]
