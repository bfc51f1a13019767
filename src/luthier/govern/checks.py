"""Policies that are Python functions: what they are shown, and what becomes of what they say."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.clock import Deadline
from luthier.spec.policy import THEN, Then
from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools.threads import in_thread
from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.clock import Clock

LONGEST = 5.0
"""Seconds that a function has for its answer."""


class Decision(msgspec.Struct, frozen=True):
    """What a policy says of a call: allow, ask or deny, why, by which rule, and where that is written."""

    then: Then
    reason: str = ""
    rule: str = ""
    place: str = ""
    hint: str = ""


class PolicyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a policy function sees it.

    `label` joins all of `arguments` and `control`, the label of the branch. `annotations` hold the four hints
    as far as they are believed: the entry's own words, a trusted server's, and else the worst.
    """

    uri: ToolUri
    arguments: Labelled[dict[str, Any]]
    label: Label
    principals: tuple[str, ...]
    control: Label = TRUSTED
    annotations: dict[str, bool] = {}
    run: str = ""
    step: str = ""


async def judged(check: Callable[[PolicyCall], object], facts: PolicyCall, clock: Clock) -> Decision | None:
    """What a function says; None where it says nothing. Whatever else comes of it is a no.

    It runs in a thread, so one that hangs blocks nothing but the call.
    """
    name, place = getattr(check, "__qualname__", type(check).__name__), _place_of(check)
    own = msgspec.structs.replace(facts, arguments=copy.deepcopy(facts.arguments))
    deadline = Deadline(clock, LONGEST)
    try:
        async with deadline:
            answer = await in_thread(lambda: check(own), name="luthier-policy")
    except TimeoutError:
        why = f"it took longer than {LONGEST:g} s" if deadline.expired else "TimeoutError"
        return _failed(name, place, why)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a policy that fails or exits has said no)
        return _failed(name, place, type(error).__name__)
    return _read(answer, name, place)


def _place_of(check: Callable[..., object]) -> str:
    """Where a function is written; of what is no plain function, its class."""
    code = getattr(check, "__code__", None)
    if code is None:
        return f"{type(check).__module__}.{type(check).__qualname__}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _read(answer: object, name: str, place: str) -> Decision | None:
    match answer:
        case None:
            return None
        case str() if answer in THEN:
            return Decision(answer, rule=name, place=place, hint=_hint(name))
        case Decision() if answer.then in THEN:
            return msgspec.structs.replace(
                answer,
                rule=answer.rule or name,
                place=answer.place or place,
                hint=answer.hint or _hint(name),
            )
        case _:
            close = getattr(answer, "close", None)  # a coroutine that nobody will await
            if callable(close):
                close()
            return _failed(name, place, f"it answered with a {type(answer).__name__}")


def _failed(name: str, place: str, why: str) -> Decision:
    return Decision(
        "deny",
        "A policy could not decide, so the answer is no.",
        rule=f"policy failed: {name}: {why}",
        place=place,
        hint='A policy function gives "allow", "ask", "deny" or None.',
    )


def _hint(name: str) -> str:
    return f"To allow it, change the policy function {name}."
