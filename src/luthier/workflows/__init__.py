"""Ensembles at work: plan, machine, record, and the runner that performs what the machine decides."""

from luthier.workflows.journal import Ledger, Writer
from luthier.workflows.nodes import Node
from luthier.workflows.operations.scripts import load_module
from luthier.workflows.plan import Plan, plan
from luthier.workflows.record import Entry, decode, encode, encode_all
from luthier.workflows.run import Run, StepStatus
from luthier.workflows.runner import Execution, prepared, resumed, run_ensemble
from luthier.workflows.runs import MemoryRuns, RunRow, RunStore, Waiting
from luthier.workflows.services import Caller, Services

__all__ = [
    "Caller",
    "Entry",
    "Execution",
    "Ledger",
    "MemoryRuns",
    "Node",
    "Plan",
    "Run",
    "RunRow",
    "RunStore",
    "Services",
    "StepStatus",
    "Waiting",
    "Writer",
    "decode",
    "encode",
    "encode_all",
    "load_module",
    "plan",
    "prepared",
    "resumed",
    "run_ensemble",
]
