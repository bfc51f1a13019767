"""What users test with: TestConductor and its mocks, and the doubles that stand beside their ports."""

from luthier.clock import FakeClock
from luthier.connect import MemoryLearned, MemoryState
from luthier.govern import MemoryAudit
from luthier.models import ScriptedModel
from luthier.testing.answers import Sequence
from luthier.testing.assertions import (
    assert_called,
    assert_called_ai,
    assert_cost_less_than,
    assert_duration,
    assert_executed,
    assert_executed_steps,
    assert_failed,
    assert_not_called,
    assert_not_executed,
    assert_output,
    assert_output_shape,
    assert_state,
    assert_successful,
    assert_untrusted,
    assert_used_tokens,
    expect,
)
from luthier.testing.conductor import Call, Result, TestConductor
from luthier.testing.faulty_runs import FaultyRuns
from luthier.testing.mocks import Mocks, named_tools, stage
from luthier.wire import Delay, Drop, Fail, Hang, MemoryServer, MemoryTransport, Progress
from luthier.workflows import MemoryRuns

__all__ = [
    "Call",
    "Delay",
    "Drop",
    "Fail",
    "FakeClock",
    "FaultyRuns",
    "Hang",
    "MemoryAudit",
    "MemoryLearned",
    "MemoryRuns",
    "MemoryServer",
    "MemoryState",
    "MemoryTransport",
    "Mocks",
    "Progress",
    "Result",
    "ScriptedModel",
    "Sequence",
    "TestConductor",
    "assert_called",
    "assert_called_ai",
    "assert_cost_less_than",
    "assert_duration",
    "assert_executed",
    "assert_executed_steps",
    "assert_failed",
    "assert_not_called",
    "assert_not_executed",
    "assert_output",
    "assert_output_shape",
    "assert_state",
    "assert_successful",
    "assert_untrusted",
    "assert_used_tokens",
    "expect",
    "named_tools",
    "stage",
]
