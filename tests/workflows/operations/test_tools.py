"""`tools` steps: which arguments are sent, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.errors import AuditError, ConnectError, NotFoundError, Refused
from luthier.spec import Project
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Labelled, Source
from luthier.tools import Envelope, Reply
from luthier.workflows.operations.schemas import is_open, names_of
from tests.workflows.house import Gate, House, entry

STEP = "{name: a, operation: tools, config: {mcp: s, tool: one}}"


def text(step: str = STEP, more: str = "") -> str:
    return f"ensemble: t\nagents:\n  - {step}\n{more}"


def properties(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, **more}


class TestArguments:
    async def sent(self, schema: Any, inputs: dict[str, Any], step: str = STEP) -> Any:
        gate = Gate({"s/one": 1}, schemas={"s/one": schema})
        run = await House(gate).run(text(step), inputs)
        assert run.success, run.error
        return gate.arguments[0]

    async def test_the_step_s_own_inputs_are_sent_as_they_are(self) -> None:
        step = STEP.replace("}}", "}, input: {x: '${input.n}', y: 2}}")
        assert await self.sent(properties("z"), {"n": 1}, step) == {"x": 1, "y": 2}

    async def test_own_inputs_that_are_empty_send_nothing(self) -> None:
        assert await self.sent(properties("n"), {"n": 1}, STEP.replace("}}", "}, input: {}}")) == {}

    @pytest.mark.parametrize(
        ("schema", "arguments"),
        [
            (properties("a", "c"), {"a": 1}),
            (properties("a", additionalProperties=True), {"a": 1}),
            ({"type": "object"}, {"a": 1, "b": 2}),
            ({}, {"a": 1, "b": 2}),
            ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1, "b": 2}),
            ({"type": "object", "additionalProperties": False}, {}),
            ({"type": "object", "properties": {}, "additionalProperties": False}, {}),
            (
                {"allOf": [properties("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": properties("b")}},
                {"a": 1, "b": 2},
            ),
            ({"anyOf": [properties("a"), properties("c")]}, {"a": 1}),
        ],
    )
    async def test_else_those_of_the_ensemble_s_inputs_that_the_schema_names(
        self, schema: Any, arguments: Any
    ) -> None:
        assert await self.sent(schema, {"a": 1, "b": 2}) == arguments

    async def test_a_result_is_sent_as_its_content(self) -> None:
        gate = Gate({"s/one": {"n": 1}, "s/two": 2})
        await House(gate).run(
            text(
                more='  - {name: b, operation: tools, config: {mcp: s, tool: two}, input: {x: "${a.output}"}}'
            )
        )
        assert gate.arguments[1] == {"x": {"n": 1}}
        assert type(gate.arguments[1]["x"]) is dict

    async def test_each_argument_keeps_its_label(self) -> None:
        gate = Gate({"s/one": 1}, schemas={"s/one": properties("a", "b")})
        given = Labelled({"a": 1, "b": {"c": 2}, "d": 3}, parts={"/b/c": UNTRUSTED, "/d": SECRET})
        await House(gate).run(text(), given)
        arguments = gate.calls[0].arguments
        assert arguments == Labelled({"a": 1, "b": {"c": 2}}, parts={"/b/c": UNTRUSTED})

    async def test_inputs_that_are_no_mapping_are_refused_before_anything_is_sent(self) -> None:
        gate = Gate({"s/one": 1})
        run = await House(gate).run(text(STEP.replace("}}", "}, input: '${[1]}'}")))
        assert run.error is not None
        assert run.error["kind"] == "arguments"
        assert gate.calls == []

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ConnectError("gone", server="s"), "connect"),
            (NotFoundError("server", "s"), "protocol"),
            (Refused("denied", "not for you", rule="allowed_agents", place="p", hint="h"), "denied"),
        ],
    )
    async def test_a_schema_that_cannot_be_had_fails_the_step(self, error: Exception, kind: str) -> None:
        gate = Gate({"s/one": 1}, schemas={"s/one": error})
        run = await House(gate).run(text(), {"a": 1})
        assert run.error is not None
        assert run.error["kind"] == kind
        assert run.note == ("allowed_agents p h" if kind == "denied" else "")
        assert gate.calls == []


class TestTheCall:
    async def test_it_says_on_whose_behalf_it_is_made(self) -> None:
        gate = Gate({"s/one": 1})
        await House(gate).run(text())
        (call,) = gate.calls
        assert call.id == "run-1/a/1"
        assert str(call.uri) == "mcp://s/one"
        assert call.context.principals == ("operator", "ensemble:t")
        assert (call.context.run, call.context.step, call.context.attempt) == ("run-1", "a", 1)
        assert call.timeout is None

    async def test_it_carries_the_label_of_the_branch(self) -> None:
        gate = Gate({"s/one": 1})
        given = Labelled({"go": True}, parts={"/go": UNTRUSTED})
        run = await House(gate).run(
            text(STEP.replace("name: a,", "name: a, condition: '${input.go}',")), given
        )
        assert gate.calls[0].context.control == UNTRUSTED
        assert run.steps["a"].label == UNTRUSTED

    async def test_intent_and_outcome_are_recorded(self) -> None:
        run = await House(Gate({"s/one": Reply(is_error=True)})).run(
            text(STEP.replace("}}", "}, input: {x: 1}}"))
        )
        intended, settled = (entry.data for entry in run.record[2:4])
        assert intended.call == settled.call == "run-1/a/1"  # type: ignore[union-attr]
        assert intended.arguments.value == {"x": 1}  # type: ignore[union-attr]
        assert settled.outcome == "error"  # type: ignore[union-attr]


class TestTheAnswer:
    async def test_it_is_an_envelope_that_falls_through_to_its_content(self) -> None:
        answer = Reply(blocks=[{"type": "text", "text": '{"number": 7}'}])
        run = await House(Gate({"s/one": answer})).run(
            text(
                more="""outputs:
  number: ${a.output.number}
  tool: ${a.output.tool}
  server: ${a.output.server}
  error: ${a.output.isError}
  content: ${a.output.content}
  text: got ${a.output}
  blocks: ${a.output.blocks}
"""
            )
        )
        assert isinstance(run.steps["a"].output, Envelope)
        assert run.output == {
            "number": 7,
            "tool": "one",
            "server": "s",
            "error": False,
            "content": {"number": 7},
            "text": 'got {"number":7}',
            "blocks": [{"type": "text", "text": '{"number": 7}'}],
        }

    async def test_its_label_is_the_step_s(self) -> None:
        label = Label(Integrity.untrusted, Confidentiality.public, frozenset({Source("s", "one", "1")}))
        run = await House(Gate({"s/one": {"n": 1}}, label=label)).run(
            text(more='outputs: {x: "${a.success}"}')
        )
        assert run.steps["a"].label == label
        assert run.label == label

    async def test_a_question_for_more_input_is_no_answer(self) -> None:
        answer = Reply(input_required={"inputRequests": {"k": {}}})
        run = await House(Gate({"s/one": answer})).run(text())
        assert run.error is not None
        assert run.error["kind"] == "protocol"
        assert run.error["input_required"] == {"inputRequests": {"k": {}}}


class TestFaults:
    @pytest.mark.parametrize(
        ("trust", "label"),
        [
            (UNTRUSTED, Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("s", "one")}))),
            (TRUSTED, Label(sources=frozenset({Source("s", "one")}))),
        ],
    )
    async def test_what_a_server_says_when_it_fails_carries_the_server_s_label(
        self, trust: Label, label: Label
    ) -> None:
        house = House(
            Gate({"s/one": ConnectError("gone", server="s", stderr_tail="oh")}), servers=[entry(trust=trust)]
        )
        run = await house.run(text(more='outputs: {why: "${a.failed ? a.error.message : null}"}'))
        assert run.output == {"why": "gone"}
        assert run.label == run.steps["a"].label == label

    async def test_the_facts_stand_in_the_error(self) -> None:
        error = ConnectError(
            "gone", server="s", phase="spawn", exit_status=3, stderr_tail="oh", hint="Start it."
        )
        run = await House(Gate({"s/one": error})).run(text())
        assert run.error == {
            "kind": "connect",
            "message": "gone",
            "server": "s",
            "phase": "spawn",
            "sent": False,
            "exit_status": 3,
            "stderr_tail": "oh",
            "hint": "Start it.",
            "step": "a",
        }

    async def test_a_call_that_cannot_be_audited_is_denied(self) -> None:
        run = await House(Gate({"s/one": AuditError("disk full")})).run(text())
        assert run.error is not None
        assert run.error["kind"] == "denied"

    async def test_a_fault_of_ours_is_logged_and_fails_the_step_only(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        run = await House(Gate({"s/one": KeyError("ours")})).run(text(more='outputs: {x: "${a.failed}"}'))
        assert run.output == {"x": True}
        assert "step a failed unexpectedly" in caplog.text


class TestSchemas:
    @pytest.mark.parametrize(
        ("schema", "names"),
        [
            (None, set()),
            (True, set()),
            ({"properties": {"a": {}}}, {"a"}),
            ({"properties": ["a"]}, set()),
            ({"oneOf": [{"properties": {"a": {}}}, True, {"properties": {"b": {}}}]}, {"a", "b"}),
            ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"properties": {"a": {}}}}}, {"a"}),
            ({"$ref": "#/nowhere/at/all"}, set()),
            ({"$ref": "other.json#/a"}, set()),
            ({"$ref": 5}, set()),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a", "properties": {"x": {}}}}}, {"x"}),
        ],
    )
    def test_the_names_that_a_schema_knows(self, schema: Any, names: set[str]) -> None:
        assert names_of(schema) == names

    @pytest.mark.parametrize(
        ("schema", "opened"),
        [
            ({}, True),
            ({"additionalProperties": False}, False),
            ({"unevaluatedProperties": False}, False),
            ({"additionalProperties": {}}, True),
            ({"allOf": [{"additionalProperties": False}]}, False),
        ],
    )
    def test_whether_it_takes_others(self, schema: Any, *, opened: bool) -> None:
        assert is_open(schema) is opened


def test_the_project_of_the_house_has_its_servers() -> None:
    assert isinstance(House(servers=[entry("x")]).services.project, Project)
