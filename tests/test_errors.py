"""The exception tree: what each error tells, which step kind it has, and that its drawing is true."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from luthier import errors
from luthier.errors import (
    AuditError,
    CallTimeoutError,
    ConnectError,
    ConnectionLostError,
    ExpressionError,
    Fault,
    FaultsError,
    InputError,
    LuthierError,
    MCPToolError,
    MessageTooLargeError,
    NotFoundError,
    ProtocolError,
    RecordError,
    Refused,
    ResultWithheldError,
    SchemaError,
    SpecError,
    StepError,
    ToolDefinitionError,
    UnresolvedReferenceError,
    WireError,
    kind_of,
)

KINDS = frozenset(
    ("connect", "timeout", "unknown", "arguments", "denied", "approval", "protocol", "code", "condition")
) | {"model", "dependency"}

EXAMPLES: list[tuple[LuthierError, str]] = [
    (SpecError([Fault("wrong", "a.yaml", 3, 5)]), "code"),
    (InputError([Fault("missing")]), "arguments"),
    (UnresolvedReferenceError("unset", reference="env.X", place="a.yaml:1:2"), "connect"),
    (NotFoundError("tool", "x", near=["y"]), "protocol"),
    (ExpressionError("bad", source="a +", offset=2), "condition"),
    (SchemaError("too deep"), "protocol"),
    (ToolDefinitionError("no name"), "code"),
    (AuditError("disk full"), "denied"),
    (ResultWithheldError("disk full"), "unknown"),
    (RecordError("torn"), "code"),
    (Refused("approval", "ask first", rule="r", place="p", hint=""), "approval"),
    (MCPToolError("s", "t", "boom"), "protocol"),
    (StepError("model", "no answer", facts={"n": 1}), "model"),
    (ConnectError("gone", server="s", exit_status=3, stderr_tail="oops"), "connect"),
    (CallTimeoutError("late", server="s", tool="t", phase="call", sent=True), "timeout"),
    (ConnectionLostError("lost", server="s", tool="t"), "unknown"),
    (ConnectionLostError("lost", server="s", tool="t", sent=False), "connect"),
    (ProtocolError("odd", server="s", code=-32601, data={"a": 1}), "protocol"),
    (MessageTooLargeError("huge", server="s"), "protocol"),
]

each_error = pytest.mark.parametrize(
    ("error", "kind"),
    [pytest.param(*example, id=f"{type(example[0]).__name__}-{example[1]}") for example in EXAMPLES],
)


class TestEveryError:
    @each_error
    def test_has_its_step_kind(self, error: LuthierError, kind: str) -> None:
        assert kind_of(error) == kind
        assert kind in KINDS

    @each_error
    def test_is_the_same_after_copying_and_pickling(self, error: LuthierError, kind: str) -> None:
        assert kind_of(copy.copy(error)) == kind
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301  (our own bytes)
            assert type(again) is type(error)
            assert str(again) == str(error)
            assert again.facts() == error.facts()
            assert again.__dict__ == error.__dict__

    @each_error
    def test_says_its_message_and_then_its_hint(self, error: LuthierError, kind: str) -> None:
        assert str(error) == error.message
        hinted = copy.copy(error)
        hinted.hint = "Try again."
        assert str(hinted) == f"{error.message} Try again."
        assert kind_of(hinted) == kind

    def test_is_drawn_in_the_docstring_below_its_parent(self) -> None:
        drawn: dict[str, str] = {}
        above: list[str] = []
        for line in (errors.__doc__ or "").splitlines():
            if match := re.match(r"    ([│├└ ─]*)(\w+Error|Refused)\b", line):
                branch, name = match.groups()
                above = [*above[: len(branch) // 4], name]
                drawn[name] = above[-2] if len(above) > 1 else "Exception"
        there = {
            name: next(parent.__name__ for parent in error.__mro__[1:] if parent is not FaultsError)
            for name, error in vars(errors).items()
            if isinstance(error, type) and issubclass(error, LuthierError) and error is not FaultsError
        }
        assert drawn == there

    @pytest.mark.parametrize(
        "error",
        [ValueError("x"), TimeoutError(), KeyboardInterrupt()],
        ids=lambda error: type(error).__name__,
    )
    def test_that_is_not_ours_is_a_fault_of_code(self, error: BaseException) -> None:
        assert kind_of(error) == "code"


class TestFacts:
    def test_of_a_call_name_server_phase_and_whether_it_was_sent(self) -> None:
        error = CallTimeoutError("late", server="git", tool="log", phase="call", sent=True)
        assert error.facts() == {"server": "git", "tool": "log", "phase": "call", "sent": True}

    def test_of_a_list_name_no_tool(self) -> None:
        assert WireError("x", server="git", phase="list").facts() == {
            "server": "git",
            "phase": "list",
            "sent": False,
        }

    def test_of_a_dead_process_hold_its_status_and_last_words(self) -> None:
        facts = ConnectError(
            "gone", server="s", phase="spawn", exit_status=1, stderr_tail="no module"
        ).facts()
        assert (facts["exit_status"], facts["stderr_tail"]) == (1, "no module")
        facts = ConnectionLostError("gone", server="s", exit_status=-9, stderr_tail="killed").facts()
        assert (facts["exit_status"], facts["stderr_tail"]) == (-9, "killed")

    def test_of_a_json_rpc_error_hold_its_code_and_not_its_data(self) -> None:
        assert ProtocolError("odd", code=-32000, data="secret").facts()["code"] == -32000
        assert "secret" not in str(ProtocolError("odd", code=-32000, data="secret").facts())

    def test_of_a_missing_name_hold_what_it_was_and_what_is_near(self) -> None:
        error = NotFoundError("tool", "lgo", near=["log"], where="on server 'git'", hint="See the list.")
        assert error.facts() == {"what": "tool", "name": "lgo", "near": ["log"]}
        assert str(error) == "There is no tool 'lgo' on server 'git'. Did you mean log? See the list."

    def test_of_an_unresolved_reference_name_it_and_its_place(self) -> None:
        error = UnresolvedReferenceError("unset", reference="env.X", place="a.yaml:1:2")
        assert error.facts() == {"reference": "env.X", "place": "a.yaml:1:2"}

    def test_of_a_step_are_its_own_and_cannot_be_changed_from_outside(self) -> None:
        given = {"line": 3}
        error = StepError("code", "raised", facts=given)
        given["line"] = 4
        error.facts()["line"] = 5
        assert error.facts() == {"line": 3}


class TestFault:
    def test_is_written_as_place_message_suggestion_and_excerpt(self) -> None:
        fault = Fault(
            "unknown key 'too'", "a.yaml", 3, 5, suggestion="did you mean 'tool'?", excerpt="  too: x\n  ^"
        )
        assert str(fault) == "a.yaml:3:5: unknown key 'too' (did you mean 'tool'?)\n  too: x\n  ^"

    def test_names_as_much_of_its_place_as_is_known(self) -> None:
        assert Fault("m", "a.yaml").place == "a.yaml"
        assert str(Fault("m", "a.yaml")) == "a.yaml: m"
        assert str(Fault("m")) == "m"

    def test_stands_with_all_others_in_the_error(self) -> None:
        error = SpecError([Fault("one", "a", 1, 1), Fault("two", "b", 2, 2)])
        assert str(error) == "a:1:1: one\nb:2:2: two"
        assert [fault.message for fault in error.faults] == ["one", "two"]


class TestCaret:
    def test_points_below_the_column(self) -> None:
        assert ExpressionError("bad", source="a + + b", offset=4).caret == "a + + b\n    ^"

    def test_shows_only_the_line_that_it_is_in(self) -> None:
        assert ExpressionError("bad", source="first\nse+cond\nthird", offset=8).caret == "se+cond\n  ^"

    def test_keeps_tabs_so_that_it_stays_below(self) -> None:
        assert ExpressionError("bad", source="\ta +", offset=3).caret == "\ta +\n\t  ^"

    def test_may_stand_behind_the_last_character(self) -> None:
        assert ExpressionError("bad", source="a +", offset=3).caret == "a +\n   ^"

    @pytest.mark.parametrize("error", [ExpressionError("bad"), ExpressionError("bad", source="a")])
    def test_is_empty_where_no_column_is_known(self, error: ExpressionError) -> None:
        assert error.caret == ""


def test_a_huge_answer_of_a_tool_is_cut_in_the_message_and_kept_in_the_error() -> None:
    content = "x" * 100_000
    error = MCPToolError("s", "t", content)
    assert error.content == content
    assert len(str(error)) < 3000
    assert "100000 characters" in str(error)
