"""What users test with: the doubles that stand beside their ports, under one roof."""

from luthier.clock import FakeClock
from luthier.connect import MemoryLearned, MemoryState
from luthier.govern import MemoryAudit
from luthier.models import ScriptedModel
from luthier.wire import MemoryServer, MemoryTransport

__all__ = [
    "FakeClock",
    "MemoryAudit",
    "MemoryLearned",
    "MemoryServer",
    "MemoryState",
    "MemoryTransport",
    "ScriptedModel",
]
