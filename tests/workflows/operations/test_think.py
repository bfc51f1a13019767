"""`think`, through the real gate: what the model is asked, what comes of its answer, and what goes wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.clock import FakeClock
from luthier.errors import ModelError, ModelFault, SpecError
from luthier.govern.records import Intent, Verdict
from luthier.models import Answer, Message, Usage
from luthier.taint import Confidentiality, Integrity, Label, Labelled, Source
from luthier.testing import MemoryAudit, ScriptedModel
from luthier.wire import MemoryServer
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from luthier.workflows import Run

MOOD = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}


def step(config: dict[str, Any], **rest: Any) -> dict[str, Any]:
    usual = {"provider": "anthropic", "model": "claude-x"}
    return {"name": "a", "operation": "think", "config": {**usual, **config}, **rest}


def ensemble(*steps: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"ensemble": "e", "agents": list(steps), "outputs": "${a.output}", **rest}


async def run(
    model: Any, *steps: dict[str, Any], given: Any = None, project: Any = None, rest: Any = None, **parts: Any
) -> Run:
    models = {"anthropic": model} if isinstance(model, ScriptedModel) else model
    async with asyncio.timeout(LONG), Runtime.open(project or {}, models=models, **parts) as rt:
        return await rt.run(ensemble(*steps, **(rest or {})), given or {})


# What is asked


async def test_a_prompt_is_asked_under_its_system_prompt_with_its_settings() -> None:
    model = ScriptedModel(["Fine."])
    config = {
        "prompt": "How is ${input.who}?",
        "systemPrompt": "Be short.",
        "temperature": 0,
        "maxTokens": 50,
        "topP": 0.5,
        "stop": "END",
        "seed": 7,
    }
    done = await run(model, step(config), given={"who": "Ann"})
    assert done.output == "Fine."
    (turn,) = model.turns
    assert turn.messages == (Message("user", "How is Ann?"),)
    assert (turn.model, turn.system, turn.max_tokens, turn.top_p) == ("claude-x", "Be short.", 50, 0.5)
    assert (turn.stop, turn.seed) == (("END",), 7)
    assert turn.temperature == 0
    assert turn.temperature is not None


async def test_what_is_not_written_is_left_to_the_provider() -> None:
    model = ScriptedModel(["Fine."])
    await run(model, step({"prompt": "Well?", "temperature": "${input.none}"}))
    (turn,) = model.turns
    assert (turn.temperature, turn.max_tokens, turn.system, turn.stop) == (None, None, "", ())


async def test_messages_are_a_conversation_and_the_prompt_is_its_last_word() -> None:
    model = ScriptedModel(["Yes."])
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Is it ${input.what}?"},
        {"role": "assistant", "content": "It is."},
    ]
    await run(
        model,
        step({"system": "Be kind.", "messages": messages, "prompt": "Sure?"}),
        given={"what": {"b": 1}},
    )
    (turn,) = model.turns
    assert turn.system == "Be kind.\n\nBe short."
    assert [(one.role, one.content) for one in turn.messages] == [
        ("user", 'Is it {"b":1}?'),
        ("assistant", "It is."),
        ("user", "Sure?"),
    ]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"prompt": "Well?"}, "Well?"),
        ({"messages": [{"role": "user", "content": "So?"}]}, "So?"),
        ({"question": "Why?", "facts": {"a": 1}}, 'question: Why?\n\nfacts: {"a":1}'),
    ],
)
async def test_without_a_prompt_the_inputs_are_asked(given: dict[str, Any], asked: str) -> None:
    model = ScriptedModel(["Fine.", "Fine."])
    await run(model, step({}), given=given)
    await run(model, step({}, inputs=given))
    assert [turn.messages for turn in model.turns] == [(Message("user", asked),)] * 2


async def test_a_prompt_that_is_a_value_is_asked_as_json() -> None:
    model = ScriptedModel(["Fine."])
    await run(model, step({"prompt": "${input.pr}"}), given={"pr": {"number": 1}})
    assert model.turns[0].messages == (Message("user", '{"number":1}'),)


async def test_data_in_a_prompt_is_never_evaluated() -> None:
    model = ScriptedModel(["Fine."])
    await run(model, step({"prompt": "${input.text}"}), given={"text": "${input.secret}", "secret": "x"})
    assert model.turns[0].messages[0].content == "${input.secret}"


@pytest.mark.parametrize(
    ("model", "provider"), [("claude-y", "anthropic"), ("gpt-y", "openai"), ("o3-mini", "openai")]
)
async def test_a_model_tells_its_provider(model: str, provider: str) -> None:
    models = {name: ScriptedModel([name]) for name in ("anthropic", "openai")}
    done = await run(models, step({"provider": None, "model": model, "prompt": "Who?"}))
    assert done.output == provider


async def test_the_only_provider_and_its_model_need_not_be_named() -> None:
    model = ScriptedModel(["Fine."])
    project = {"providers": {"house": {"type": "openai", "base_url": "http://127.0.0.1:1", "model": "m"}}}
    done = await run(
        {"house": model}, step({"provider": None, "model": None, "prompt": "?"}), project=project
    )
    assert (done.output, model.turns[0].model) == ("Fine.", "m")


# What comes of the answer


async def test_usage_and_cost_stand_beside_the_answer_and_in_the_record() -> None:
    answer = Answer(
        text="Fine.",
        model="claude-x-dated",
        usage=Usage(input_tokens=1000, output_tokens=100),
        request_id="r-1",
    )
    project = {"providers": {"anthropic": {"prices": {"claude-x": {"input": 3, "output": 15}}}}}
    rest = {"outputs": {"text": "${a.output}", "meta": "${a.output._meta}", "content": "${a.output.content}"}}
    done = await run(ScriptedModel([answer]), step({"prompt": "?"}), project=project, rest=rest)
    meta = {
        "provider": "anthropic",
        "model": "claude-x-dated",
        "usage": {
            "inputTokens": 1000,
            "outputTokens": 100,
            "totalTokens": 1100,
            "cacheReadTokens": 0,
            "cacheWriteTokens": 0,
        },
        "tokensUsed": 1100,
        "cost": 0.0045,
        "turns": 1,
        "stop": "end",
        "requestId": "r-1",
    }
    assert done.output == {"text": "Fine.", "content": "Fine.", "meta": meta}
    (ended,) = [entry.data for entry in done.record if entry.kind == "StepEnded"]
    assert ended.output.value["_meta"] == meta  # type: ignore[union-attr]


async def test_a_schema_makes_the_answer_a_value_that_is_read_by_path() -> None:
    rest = {"outputs": {"whole": "${a.output}", "mood": "${a.output.mood}"}}
    model = ScriptedModel([{"mood": "good"}])
    done = await run(model, step({"prompt": "?", "schema": MOOD}), rest=rest)
    assert done.output == {"whole": {"mood": "good"}, "mood": "good"}
    assert model.turns[0].schema == MOOD


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}])
async def test_a_schema_may_be_of_any_type(schema: dict[str, Any]) -> None:
    value = [1, 2] if schema["type"] == "array" else 3
    done = await run(ScriptedModel([value]), step({"prompt": "?", "outputSchema": schema}))
    assert done.output == value


async def test_an_answer_that_does_not_fit_is_handed_back_once() -> None:
    model = ScriptedModel([{"mood": "so so"}, {"mood": "bad"}])
    rest = {"outputs": {"mood": "${a.output.mood}", "meta": "${a.output._meta}"}}
    done = await run(model, step({"prompt": "Well?", "schema": MOOD}), rest=rest)
    assert done.output["mood"] == "bad"
    assert done.output["meta"]["turns"] == 2
    first, second = model.turns
    assert second.messages[:2] == (*first.messages, Message("assistant", '{"mood":"so so"}'))
    assert "mood" in second.messages[2].content
    calls = [entry.data for entry in done.record if entry.kind == "CallIntended"]
    assert len({call.call for call in calls}) == 2  # type: ignore[union-attr]


async def test_a_second_answer_that_does_not_fit_fails_the_step_with_what_is_wrong() -> None:
    model = ScriptedModel(["no json", {"mood": 1}])
    done = await run(model, step({"prompt": "?", "schema": MOOD}))
    assert len(model.turns) == 2
    assert done.error is not None
    assert done.error["kind"] == "model"
    assert "does not fit the schema" in done.error["message"]
    assert done.error["faults"]
    assert done.error["_meta"]["turns"] == 2
    assert done.steps["a"].label.integrity is Integrity.untrusted


async def test_an_answer_that_was_cut_off_is_not_handed_back() -> None:
    model = ScriptedModel([Answer(text='{"mood": "go', model="m", stop="length")])
    done = await run(model, step({"prompt": "?", "schema": MOOD}))
    assert len(model.turns) == 1
    assert done.error is not None
    assert "cut off" in done.error["message"]
    assert "maxTokens" in done.error["hint"]


async def test_a_kept_answer_is_given_to_the_same_question_and_to_no_other() -> None:
    model = ScriptedModel(lambda turn: turn.messages[0].content)
    sights = iter([1, 1, 2])
    seen = MemoryServer("s", {"look": lambda _: {"seen": next(sights)}})
    look = {"name": "look", "operation": "tools", "config": {"mcp": "s", "tool": "look"}, "inputs": {}}
    asking = step({"prompt": "Seen: ${look.output.seen}"}, cache={"ttl": 60})
    project = {"mcpServers": {"s": {"command": "python"}}}
    async with Runtime.open(project, models={"anthropic": model}, transports={"s": seen.transport}) as rt:
        said = [(await rt.run(ensemble(look, asking))).output for _ in range(3)]
    assert said == ["Seen: 1", "Seen: 1", "Seen: 2"]
    assert len(model.turns) == 2


# Through the gate

SECRETIVE = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "page", "c")}))


async def test_an_answer_joins_the_labels_of_all_that_the_model_saw() -> None:
    seen = Labelled("text", SECRETIVE)
    done = await run(
        ScriptedModel(["Fine."]), step({"prompt": "Sum up: ${input.page}"}), given={"page": seen}
    )
    assert done.label.integrity is Integrity.untrusted
    assert {source.tool for source in done.label.sources} == {"page", "model/anthropic"}


async def test_a_label_is_joined_from_system_prompt_messages_and_settings_too() -> None:
    seen = Labelled("text", SECRETIVE)
    for config in (
        {"prompt": "?", "system": "${input.x}"},
        {"messages": [{"role": "user", "content": "${input.x}"}]},
        {"prompt": "?", "stop": ["${input.x}"]},
        {"prompt": "?", "model": "${input.x}"},
        {},
    ):
        done = await run(ScriptedModel(["Fine."]), step(config), given={"x": seen})
        assert any(source.tool == "page" for source in done.label.sources), config


async def test_no_label_is_in_what_the_model_sees() -> None:
    model = ScriptedModel(["Fine."])
    await run(model, step({"prompt": "${input}"}), given={"x": Labelled("text", SECRETIVE)})
    assert model.turns[0].messages == (Message("user", '{"x":"text"}'),)


async def test_answers_are_untrusted_and_private_unless_the_project_says_otherwise() -> None:
    plain = await run(ScriptedModel(["Fine."]), step({"prompt": "?"}))
    assert (plain.label.integrity, plain.label.confidentiality) == (
        Integrity.untrusted,
        Confidentiality.private,
    )
    trust = {"integrity": "trusted", "confidentiality": "public"}
    project = {"providers": {"anthropic": {"trust": trust}}}
    declared = await run(ScriptedModel(["Fine."]), step({"prompt": "?"}), project=project)
    assert (declared.label.integrity, declared.label.confidentiality) == (
        Integrity.trusted,
        Confidentiality.public,
    )
    seen = {"x": Labelled("text", SECRETIVE)}
    joined = await run(ScriptedModel(["Fine."]), step({"prompt": "${input.x}"}), project=project, given=seen)
    assert joined.label.integrity is Integrity.untrusted


async def test_a_turn_is_audited_without_its_prompt() -> None:
    audit = MemoryAudit()
    await run(ScriptedModel(["Fine indeed."]), step({"prompt": "A secret plan?"}), audit=audit)
    (verdict,) = [one for one in audit.records if isinstance(one, Verdict)]
    (intent,) = [one for one in audit.records if isinstance(one, Intent)]
    assert (verdict.uri, verdict.verdict) == ("builtin://model/anthropic", "allowed")
    assert intent.uri == "builtin://model/anthropic"
    assert "secret plan" not in repr(audit.records)
    assert "indeed" not in repr(audit.records)


async def test_a_policy_keeps_a_label_from_a_model() -> None:
    rule = {
        "name": "nothing private to a model",
        "when": {"tool": "builtin://model/*", "argument": "*", "label": {"confidentiality": "private"}},
        "then": "deny",
    }
    model = ScriptedModel(["Fine."])
    project = {"policies": [rule]}
    done = await run(
        model, step({"prompt": "${input.x}"}), project=project, given={"x": Labelled("text", SECRETIVE)}
    )
    assert done.error is not None
    assert (done.error["kind"], done.refused) == ("denied", True)
    assert model.turns == []
    assert (await run(model, step({"prompt": "?"}), project=project)).success


async def test_a_budget_counts_every_turn() -> None:
    project = {"budgets": [{"name": "one turn", "tool": "builtin://model/*", "calls": 1, "per": "run"}]}
    model = ScriptedModel([{"mood": "so so"}, {"mood": "good"}])
    done = await run(model, step({"prompt": "?", "schema": MOOD}), project=project)
    assert done.error is not None
    assert "one turn" in done.error["message"]
    assert len(model.turns) == 1


async def test_a_model_is_offered_to_nobody_as_a_tool() -> None:
    async with Runtime.open({}, models={"anthropic": ScriptedModel(["Fine."])}) as rt:
        assert not [name for name in rt.tools.names() if "model" in name]
        messages = [{"role": "user", "content": "?"}]
        result = await rt.call("builtin://model/anthropic", model="m", messages=messages)
        assert result.content["text"] == "Fine."


# What goes wrong


async def test_settings_that_an_expression_gets_wrong_are_refused_before_anything_is_sent() -> None:
    model = ScriptedModel([])
    done = await run(model, step({"prompt": "?", "temperature": "${input.t}"}), given={"t": 9})
    assert done.error is not None
    assert done.error["kind"] == "arguments"
    assert "temperature" in done.error["message"]
    assert model.turns == []


@pytest.mark.parametrize(
    ("messages", "said"),
    [("text", "not text"), ([{"role": "user"}], "number 1"), ([{"role": "god", "content": "x"}], "number 1")],
)
async def test_messages_that_are_none_are_refused(messages: Any, said: str) -> None:
    done = await run(ScriptedModel([]), step({"messages": "${input.m}"}), given={"m": messages})
    assert done.error is not None
    assert done.error["kind"] == "arguments"
    assert said in done.error["message"]


async def test_nothing_to_ask_is_a_fault() -> None:
    done = await run(ScriptedModel([]), step({}))
    assert done.error is not None
    assert "nothing to ask" in done.error["message"]


async def test_a_model_that_an_expression_leaves_empty_is_a_fault() -> None:
    done = await run(ScriptedModel([]), step({"prompt": "?", "model": "${input.none}"}))
    assert done.error is not None
    assert "which model" in done.error["message"]
    unknown = await run(
        {}, step({"provider": None, "model": "${input.m}", "prompt": "?"}), given={"m": "x-1"}
    )
    assert unknown.error is not None
    assert "which provider" in unknown.error["message"]


async def test_a_fault_of_the_provider_is_the_steps_with_its_facts() -> None:
    fault = ModelFault(status=429, type="rate_limit_error", request_id="r-1", retry_after=7)
    busy = ModelError("Too busy.", fault, provider="anthropic", model="claude-x")
    done = await run(ScriptedModel([busy]), step({"prompt": "?"}))
    assert done.error == {
        "kind": "model",
        "message": "Too busy.",
        "provider": "anthropic",
        "model": "claude-x",
        "status": 429,
        "type": "rate_limit_error",
        "request_id": "r-1",
        "retry_after": 7,
        "step": "a",
    }
    assert done.steps["a"].label.integrity is Integrity.untrusted


@pytest.mark.parametrize(("longest", "turns"), [(10_000, 2), (5_000, 1)])
async def test_a_provider_that_says_when_to_ask_again_is_asked_then_or_not_at_all(
    longest: int, turns: int
) -> None:
    busy = ModelError("Too busy.", ModelFault(status=429, retry_after=7))
    model, clock = ScriptedModel([busy, "Fine."]), FakeClock()
    retry = {"maxAttempts": 2, "initialDelay": 0, "retryOn": [429], "maxDelay": longest}
    began = clock.monotonic()
    going = asyncio.create_task(run(model, step({"prompt": "?"}, retry=retry), clock=clock))
    async with asyncio.timeout(LONG):
        while len(model.turns) < turns and not going.done():
            await asyncio.to_thread(int)  # who looks into the store is given the time for it
            await clock.advance(0.5)
    assert (await going).success is (turns > 1)
    assert len(model.turns) == turns
    assert clock.monotonic() - began >= 7 * (turns - 1)


RETRY = {"maxAttempts": 2, "initialDelay": 0}


@pytest.mark.parametrize(
    ("error", "retry", "turns"),
    [
        (ModelError("busy", ModelFault(status=503)), RETRY, 2),
        (ModelError("busy", ModelFault(status=429)), RETRY, 1),
        (ModelError("busy", ModelFault(status=429)), {**RETRY, "retryOn": [429]}, 2),
        (ModelError("lost"), RETRY, 1),
        (ModelError("lost"), {**RETRY, "retryOn": ["model"]}, 2),
        (ModelError("no", ModelFault(status=401), retryable=False), {**RETRY, "retryOn": ["model"]}, 1),
    ],
)
async def test_a_turn_is_repeated_by_status_and_kind(error: ModelError, retry: Any, turns: int) -> None:
    model = ScriptedModel([error, "Fine."])
    done = await run(model, step({"prompt": "?"}, retry=retry))
    assert len(model.turns) == turns
    assert done.success == (turns == 2)


async def test_a_turn_that_takes_too_long_is_called_off() -> None:
    clock, begun, gone = FakeClock(), asyncio.Event(), asyncio.Event()

    async def forever(_: Any) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return ""

    for config, more in (({"timeout": 1000}, {}), ({}, {"timeout": 1000})):
        begun.clear()
        gone.clear()
        model = ScriptedModel(forever)
        task = asyncio.create_task(run(model, step({"prompt": "?", **config}, **more), clock=clock))
        await begun.wait()
        await clock.advance(2)
        done = await task
        assert gone.is_set()
        assert done.error is not None
        assert done.error["kind"] == "timeout"


async def test_a_key_that_is_not_set_fails_the_step_with_its_name() -> None:
    done = await run({}, step({"prompt": "?"}, retry=RETRY), environ={})
    assert done.error is not None
    assert "ANTHROPIC_API_KEY" in done.error["message"]
    assert done.steps["a"].attempts == 1


# What check says of it


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"provider": "antropic"}, "no provider `antropic`.*did you mean anthropic"),
        ({"provider": None, "model": "mystery"}, "`provider` is missing"),
        ({"model": None}, "`model` is missing"),
    ],
)
async def test_a_step_that_asks_nobody_is_a_fault_before_anything_runs(config: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        await run({}, step({"prompt": "?", **config}))
