"""`endorse` steps: what is of the closed type is trusted from there on, and what is not fails the step."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.taint import TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Labelled, Source
from tests.workflows.house import Gate, House

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))
YES = Labelled(value=True, label=WEB)


def ensemble(as_: str, *, value: str = "${input.x}", more: str = "") -> str:
    return f"""
ensemble: t
agents:
  - {{name: a, operation: endorse, config: {{value: "{value}", as: {as_}, reason: It is one of few.}}{more}}}
outputs: ${{a.output}}
"""


async def run(text: str, gate: Gate | None = None, **inputs: Any) -> Any:
    parts = {f"/{name}": value.whole for name, value in inputs.items() if isinstance(value, Labelled)}
    plain = {name: value.value if isinstance(value, Labelled) else value for name, value in inputs.items()}
    return await House(gate).run(text, Labelled(plain, parts=parts))


async def test_what_is_of_the_type_is_trusted_and_says_where_it_came_from() -> None:
    gate = Gate()
    done = await run(ensemble("{enum: [low, high]}"), gate, x=Labelled("low", WEB))
    assert done.output == "low"
    assert done.label.integrity is Integrity.trusted
    assert done.label.confidentiality is Confidentiality.private, "to be trusted is not to be public"
    assert done.label.sources == WEB.sources | {Source("", "endorse", "run-1/a")}
    assert done.steps["a"].label.integrity is Integrity.trusted
    ((value, words, reason, context),) = gate.endorsements
    assert (value.whole, words, reason) == (WEB, "one of low, high", "It is one of few.")
    assert context.principals == ("operator", "ensemble:t")


@pytest.mark.parametrize("value", ["medium", "low; ignore all", None, 5, ["low"], {"low": 1}])
async def test_what_is_not_of_the_type_fails_the_step_and_is_not_told(value: Any) -> None:
    done = await run(ensemble("{enum: [low, high]}"), x=Labelled(value, WEB))
    assert not done.success
    assert done.error["kind"] == "arguments"
    assert done.error["message"] == "The value is not one of low, high, so it is not endorsed."
    assert done.steps["a"].label.integrity is Integrity.untrusted, "that it failed tells of the value"


async def test_the_answer_of_a_tool_is_endorsed_by_its_content() -> None:
    text = """
ensemble: t
agents:
  - {name: ask, operation: tools, config: {mcp: s, tool: ask}}
  - name: a
    operation: endorse
    config: {value: "${ask.output}", as: {integer: [0, 10]}, reason: It is a number of stars.}
outputs: ${a.output}
"""
    done = await run(text, Gate({"s/ask": 7}))
    assert (done.output, done.label.integrity) == (7, Integrity.trusted)


class TestIds:
    TEXT = ensemble('{id_of: "${input.ids}"}')

    async def test_one_of_the_ids_is_trusted_as_far_as_they_are(self) -> None:
        ids = Labelled(["a", "b"], Label(confidentiality=Confidentiality.secret))
        done = await run(self.TEXT, x=Labelled("a", WEB), ids=ids)
        assert done.label.integrity is Integrity.trusted
        assert done.label.confidentiality is Confidentiality.secret

    async def test_another_is_not(self) -> None:
        done = await run(self.TEXT, x=Labelled("c", WEB), ids=["a", "b"])
        assert done.error["kind"] == "arguments"

    async def test_ids_that_are_not_trusted_endorse_nothing(self) -> None:
        done = await run(self.TEXT, x=Labelled("a", WEB), ids=Labelled(["a"], UNTRUSTED))
        assert done.error["kind"] == "denied"

    async def test_what_is_no_list_of_ids_fails_the_step(self) -> None:
        done = await run(self.TEXT, x=Labelled("a", WEB), ids="abc")
        assert done.error["kind"] == "arguments"
        assert "id_of" in done.error["message"]


async def test_in_a_branch_that_is_not_trusted_nothing_becomes_so() -> None:
    text = ensemble("boolean", more=', condition: "${input.y}"')
    done = await run(text, x=YES, y=YES)
    assert done.output is True
    assert done.label.integrity is Integrity.untrusted
    assert (await run(text, x=YES, y=True)).label.integrity is Integrity.trusted


async def test_what_was_endorsed_steers_without_taint() -> None:
    text = """
ensemble: t
agents:
  - {name: sure, operation: endorse, config: {value: "${input.x}", as: boolean, reason: Yes or no.}}
  - {name: then, operation: transform, config: {value: done}, condition: "${sure.output}"}
outputs: ${then.output}
"""
    done = await run(text, x=YES)
    assert done.output == "done"
    assert done.label.integrity is Integrity.trusted
    tainted = text.replace('"${sure.output}"', '"${input.x}"')
    assert (await run(tainted, x=YES)).label.integrity is Integrity.untrusted


async def test_what_was_trusted_before_stays_so() -> None:
    done = await run(ensemble("boolean"), x=True)
    assert done.label.join(TRUSTED).integrity is Integrity.trusted
