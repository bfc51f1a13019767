"""The gate: every call goes through it, and its guards decide, label and record."""

from luthier.govern.approval import Approval
from luthier.govern.approvals import Approvals
from luthier.govern.audit import AuditLog, FileAudit, MemoryAudit
from luthier.govern.budget import Budgets
from luthier.govern.checkpoints import Checkpoint, CheckpointFile
from luthier.govern.checks import Decision, PolicyCall
from luthier.govern.desk import Desk
from luthier.govern.gateway import Gateway
from luthier.govern.guard import GateCall, Guard, Next
from luthier.govern.keys import AuditKey
from luthier.govern.pin_book import PinBook
from luthier.govern.pins import Pin, Review, Reviewed
from luthier.govern.places import AuditPlaces
from luthier.govern.policy import Policy
from luthier.govern.reading import (
    FileSegments,
    Segment,
    Segments,
    Trail,
    read_audit,
    read_segment,
    tail,
    verify,
)
from luthier.govern.records import (
    Asked,
    Decided,
    Endorsed,
    Intent,
    Outcome,
    Record,
    SegmentOpened,
    Switched,
    Tag,
    Verdict,
)
from luthier.govern.requests import Answer, Question, Request
from luthier.govern.switch import KillSwitch, Off, Switches

__all__ = [
    "Answer",
    "Approval",
    "Approvals",
    "Asked",
    "AuditKey",
    "AuditLog",
    "AuditPlaces",
    "Budgets",
    "Checkpoint",
    "CheckpointFile",
    "Decided",
    "Decision",
    "Desk",
    "Endorsed",
    "FileAudit",
    "FileSegments",
    "GateCall",
    "Gateway",
    "Guard",
    "Intent",
    "KillSwitch",
    "MemoryAudit",
    "Next",
    "Off",
    "Outcome",
    "Pin",
    "PinBook",
    "Policy",
    "PolicyCall",
    "Question",
    "Record",
    "Request",
    "Review",
    "Reviewed",
    "Segment",
    "SegmentOpened",
    "Segments",
    "Switched",
    "Switches",
    "Tag",
    "Trail",
    "Verdict",
    "read_audit",
    "read_segment",
    "tail",
    "verify",
]
