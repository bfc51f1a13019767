"""What leaves: never what is secret, and of a failure nothing of the inside of the house."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from luthier.errors import AuditError, Fault, InputError, Refused
from luthier.serve.answer import LABEL, RUN, of_error, of_result, of_run
from luthier.spec import McpTrigger
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Label, Labelled, Source
from luthier.tools import Reply, ToolResult
from luthier.uri import ToolUri
from luthier.workflows import Run
from luthier.workflows.run import StepStatus

NOWHERE = {"rule": "r", "place": "p", "hint": "h"}
PLAIN = McpTrigger(name="t")
TYPED = McpTrigger(name="t", output_schema={"type": "object", "required": ["a"]})


def run(output: Any = None, label: Label = UNTRUSTED, **more: Any) -> Run:
    fields: dict[str, Any] = {"success": True, "steps": {}, **more}
    return Run(id="r1", ensemble="e", labelled=Labelled(output, label), **fields)


def failed(kind: str, label: Label = UNTRUSTED) -> Run:
    steps = {"s": StepStatus(failed=True, label=label)}
    return run(success=False, steps=steps, error={"kind": kind, "message": "words", "step": "s"})


def test_text_goes_as_it_is_and_a_value_as_json() -> None:
    assert of_run(run("hi"), PLAIN).blocks == [{"type": "text", "text": "hi"}]
    answer = of_run(run({"a": 1}), PLAIN)
    assert answer.blocks == [{"type": "text", "text": '{\n  "a": 1\n}'}]
    assert not isinstance(answer.structured, dict)


def test_text_that_is_no_unicode_goes_too() -> None:
    answer = of_run(run({"a": ["\ud800", 1]}), TYPED)
    assert answer.structured == {"a": ["?", 1]}
    assert msgspec.json.decode(answer.blocks[0]["text"]) == {"a": ["?", 1]}


def test_a_promised_output_is_structured_and_kept_to() -> None:
    assert of_run(run({"a": 1}), TYPED).structured == {"a": 1}
    broken = of_run(run({"b": 1}), TYPED)
    assert broken.is_error
    assert "not what it promises" in broken.blocks[0]["text"]


def test_the_label_goes_along_without_the_ids_of_calls() -> None:
    label = UNTRUSTED.join(Label(sources=frozenset({Source("git", "log", "c-1")})))
    assert of_run(run("x", label), PLAIN).meta == {
        LABEL: {"integrity": "untrusted", "confidentiality": "private", "sources": ["git:log"]},
        RUN: "r1",
    }


@pytest.mark.parametrize(
    "answer",
    [
        of_run(run("hunter2", SECRET), PLAIN),
        of_result(
            ToolResult(
                uri=ToolUri.custom("t"),
                call_id="c",
                reply=Reply(blocks=[{"type": "text", "text": "hunter2"}]),
                duration=1,
                label=SECRET,
            )
        ),
    ],
)
def test_what_is_secret_never_leaves(answer: Any) -> None:
    assert answer.is_error
    assert "hunter2" not in str(answer)
    assert "secret" in answer.blocks[0]["text"]


def test_one_secret_part_keeps_the_whole() -> None:
    mixed = Run(
        id="r",
        ensemble="e",
        success=True,
        steps={},
        labelled=Labelled({"a": 1, "b": "hunter2"}, TRUSTED, {"/b": SECRET}),
    )
    assert "hunter2" not in str(of_run(mixed, PLAIN))


@pytest.mark.parametrize(
    ("kind", "told"), [("arguments", True), ("timeout", True), ("connect", False), ("denied", False)]
)
def test_a_failure_says_what_its_caller_can_use(kind: str, *, told: bool) -> None:
    text = of_run(failed(kind), PLAIN).blocks[0]["text"]
    assert text == f"Execution failed at step s [{kind}]" + ": words" * told


def test_a_failure_of_something_secret_says_nothing_of_it() -> None:
    assert "words" not in str(of_run(failed("arguments", SECRET), PLAIN))


def test_a_failure_without_a_step_says_so() -> None:
    answer = of_run(run(success=False, error=None), PLAIN)
    assert answer.blocks[0]["text"] == "Execution failed [code]"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError([Fault("the input `a` is missing"), Fault("b")]), "the input `a` is missing\nb"),
        (Refused("arguments", "no such argument", **NOWHERE), "no such argument"),
        (Refused("denied", "the rule at luthier.yaml:3", **NOWHERE), "The call failed [denied]."),
        (AuditError("/var/log cannot be written"), "The call failed [denied]."),
    ],
)
def test_what_stopped_a_call_is_told_as_far_as_it_is_the_callers(error: Any, text: str) -> None:
    answer = of_error(error)
    assert (answer.is_error, answer.blocks) == (True, [{"type": "text", "text": text}])
