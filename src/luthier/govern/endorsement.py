"""Endorsing: a value that is not trusted becomes trusted, where it can only be one of a few harmless ones.

What it is about is told by whoever wrote the project, never by a model or a server: there is no tool for it.
The value's confidentiality and its sources stay; the endorsement is one more source. Nothing is endorsed that
was not written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import Refused
from luthier.govern.digests import arguments_digest, tag_of
from luthier.govern.records import Endorsed
from luthier.taint import Integrity, Label, Labelled, Source

if TYPE_CHECKING:
    from luthier.context import CallContext
    from luthier.tools.closed import ClosedType


def endorsed(value: Labelled[Any], closed: ClosedType, source: Source) -> Labelled[Any] | None:
    """The value with the label of what is endorsed; None where it is not of the type. Pure."""
    if not closed.fits(value.value):
        return None
    whole = value.whole
    return Labelled(value.value, Label(Integrity.trusted, whole.confidentiality, whole.sources | {source}))


def source_of(context: CallContext) -> Source:
    """The endorsement as a source of what was endorsed."""
    where = "/".join(part for part in (context.run, context.step) if part)
    return Source("", "endorse", where)


def record_of(
    value: Labelled[Any], closed: ClosedType, reason: str, context: CallContext, *, done: bool
) -> Endorsed:
    """The line in the audit log."""
    return Endorsed(
        verdict="endorsed" if done else "refused",
        type=closed.words,
        reason=reason,
        principals=context.principals,
        run=context.run,
        step=context.step,
        attempt=context.attempt,
        value=arguments_digest(value.value),
        label=tag_of(value.whole),
        trace=context.trace_id,
    )


def misfit(closed: ClosedType, context: CallContext) -> Refused:
    """The value is not told: it may be what somebody wants said."""
    return Refused(
        "arguments",
        f"The value is not {closed.words}, so it is not endorsed.",
        rule="endorse",
        place=f"step {context.step}" if context.step else "Runtime.endorse",
        hint="Only a value of the closed type that the step names is endorsed.",
    )
