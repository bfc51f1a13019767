"""Ensembles at work: plan, machine, record, and the runner that performs what the machine decides."""

from luthier.workflows.files import FileRecords
from luthier.workflows.nodes import Node
from luthier.workflows.operations.scripts import load_module
from luthier.workflows.plan import Plan, plan
from luthier.workflows.record import Entry, decode, encode, encode_all
from luthier.workflows.run import Run, StepStatus
from luthier.workflows.runner import run_ensemble
from luthier.workflows.services import Caller, Records, Services

__all__ = [
    "Caller",
    "Entry",
    "FileRecords",
    "Node",
    "Plan",
    "Records",
    "Run",
    "Services",
    "StepStatus",
    "decode",
    "encode",
    "encode_all",
    "load_module",
    "plan",
    "run_ensemble",
]
