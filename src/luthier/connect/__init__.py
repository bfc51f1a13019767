"""Connections to servers: what may be started and how, one owner for each, and the manager over them."""

from luthier.connect.learned import FileLearned, Learned, MemoryLearned
from luthier.connect.manager import ConnectionManager
from luthier.connect.registry import ServerRegistry

__all__ = ["ConnectionManager", "FileLearned", "Learned", "MemoryLearned", "ServerRegistry"]
