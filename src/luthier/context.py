"""What travels down with a call: run, step, who calls, until when, and the label of the branch it stands in.

Data only: never a bag of services.
"""

from __future__ import annotations

import msgspec

from luthier.taint import TRUSTED, Label
from luthier.trace import Trace

OPERATOR = "operator"


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """`principals` runs from the outermost caller to the innermost; `deadline` is in monotonic seconds.

    `root` names what the outermost caller began: it is the same in all runs inside of each other. `durable`:
    its run can be suspended, so it need not wait for people. `trace` is the trace that it belongs to, if any.
    """

    principals: tuple[str, ...] = (OPERATOR,)
    run: str = ""
    root: str = ""
    step: str = ""
    attempt: int = 1
    deadline: float | None = None
    control: Label = TRUSTED
    durable: bool = False
    trace: Trace | None = None

    @property
    def principal(self) -> str:
        """The innermost caller."""
        return self.principals[-1]

    @property
    def trace_id(self) -> str:
        """The id of the trace; empty where it belongs to none."""
        return "" if self.trace is None else self.trace.id

    def within(self, principal: str) -> CallContext:
        """The same context, one caller further in."""
        return msgspec.structs.replace(self, principals=(*self.principals, principal))
