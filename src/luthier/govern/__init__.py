"""The gate: every call goes through it, and its guards decide, label and record."""

from luthier.govern.audit import AuditLog, FileAudit, MemoryAudit
from luthier.govern.gateway import Gateway
from luthier.govern.guard import GateCall, Guard, Next
from luthier.govern.reading import Segment, Trail, read_audit, read_segment, tail
from luthier.govern.records import Intent, Outcome, Record, SegmentOpened, Tag, Verdict

__all__ = [
    "AuditLog",
    "FileAudit",
    "GateCall",
    "Gateway",
    "Guard",
    "Intent",
    "MemoryAudit",
    "Next",
    "Outcome",
    "Record",
    "Segment",
    "SegmentOpened",
    "Tag",
    "Trail",
    "Verdict",
    "read_audit",
    "read_segment",
    "tail",
]
