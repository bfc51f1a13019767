"""`think`: a turn of a model, called through the gate like any tool.

The output is the answer: a text, or with a schema the value that fits it. An answer that does not fit is
handed back once, with what is wrong with it; a second one fails the step. `_meta` beside it tells who
answered, with what usage, and at what cost. No label is in what a model sees; its answer joins them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import LuthierError, ModelError, StepError, WireError
from luthier.models import model_uri
from luthier.spec.provider import USUAL, provider_name
from luthier.spec.think import MESSAGES, ROLES
from luthier.taint import Labelled, merge
from luthier.tools import Envelope, Refusal, ToolCall, delivered
from luthier.tools.schema import Schema
from luthier.workflows.operations.calls import refused, settled, status_of
from luthier.workflows.operations.texts import a_kind, json_text, spelled
from luthier.workflows.retries import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from luthier.spec import Provider, ThinkConfig
    from luthier.tools import ToolResult
    from luthier.workflows.operations.attempt import Attempt

_AS_THEY_ARE = ("temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "seed")
_SHOWN = 5  # faults that a model is told of


async def perform(attempt: Attempt, config: ThinkConfig) -> Outcome:
    """Ask. Raises StepError where there is nothing to ask or nobody to be asked."""
    settings = {name: _clean(attempt.evaluate(one)) for name, one in config.settings().items()}
    provider = _provider(attempt, config, settings)
    asked = _asked(attempt, settings, provider)
    if config.schema is not None:
        asked["schema"] = Labelled(config.schema)
    spent: list[dict[str, Any]] = []
    while True:
        answer = await _turned(attempt, config, provider, asked, len(spent))
        if isinstance(answer, Outcome):
            return answer
        told = answer.content
        spent.append(told)
        attempt.label = attempt.label.join(answer.label)
        faults = _faults(told, config.schema)
        if not faults:
            return _answered(attempt, told, spent)
        if len(spent) > 1 or told["stop"] == "length":
            raise _misfit(told, faults, spent)
        asked["messages"] = _again(asked["messages"], answer, faults)


async def _turned(
    attempt: Attempt, config: ThinkConfig, provider: Provider, asked: Mapping[str, Labelled[Any]], number: int
) -> ToolResult | Outcome:
    """One turn; or the outcome that its failure makes."""
    call = ToolCall(
        id=f"{attempt.context.run}/{attempt.step.name}/{attempt.number}{'/again' * number}",
        uri=model_uri(provider.id),
        arguments=merge(dict(asked)),
        context=attempt.context,
        timeout=config.timeout,
    )
    try:
        answer = await settled(attempt, call)
    except LuthierError as error:
        hopeless = isinstance(error, ModelError) and not error.retryable
        status = status_of(error) if isinstance(error, WireError) else None
        label = attempt.label.join(provider.trust)
        wait = error.retry_after if isinstance(error, ModelError) else None
        return attempt.failed(
            error, label=label, harmless=True, hopeless=hopeless, status=status, retry_after=wait
        )
    return refused(attempt, answer, attempt.label) if isinstance(answer, Refusal) else answer


def _provider(attempt: Attempt, config: ThinkConfig, settings: Mapping[str, Labelled[Any]]) -> Provider:
    providers = attempt.services.project.providers
    model = settings["model"].value if "model" in settings else None
    name = provider_name(config.provider, model, providers)
    found = providers.get(name) or USUAL.get(name)
    if found is None:
        message = f"there is no provider {name!r}" if name else "it is not said which provider is to be asked"
        raise StepError("model", message, hint="Name one under `provider`, and write it under `providers:`.")
    return found


def _asked(
    attempt: Attempt, settings: Mapping[str, Labelled[Any]], provider: Provider
) -> dict[str, Labelled[Any]]:
    """The arguments of the call: the settings as the port takes them."""
    asked = {name: settings[name] for name in _AS_THEY_ARE if _is_given(settings, name)}
    model = settings.get("model")
    asked["model"] = model if model is not None and model.value else Labelled(provider.model)
    if not asked["model"].value:
        message = f"it is not said which model of {provider.id!r} is to be asked"
        raise StepError("model", message, hint="Name one under `model`.")
    if _is_given(settings, "stop"):
        stop = settings["stop"]
        asked["stop"] = merge([stop]) if isinstance(stop.value, str) else stop
    system, messages = _conversation(attempt, settings)
    if system is not None:
        asked["system"] = system
    asked["messages"] = merge(messages)
    return asked


def _conversation(
    attempt: Attempt, settings: Mapping[str, Labelled[Any]]
) -> tuple[Labelled[str] | None, list[Labelled[Any]]]:
    """What the system prompt is, and the messages; the prompt is the last one.

    Without either, the step's inputs are asked.
    """
    if not _is_given(settings, "prompt") and not _is_given(settings, "messages"):
        settings = {**settings, **_from_inputs(attempt)}
    heads = [_text(settings["system"])] if _is_given(settings, "system") else []
    messages: list[Labelled[Any]] = []
    if _is_given(settings, "messages"):
        for message in _messages(settings["messages"]):
            if message.value["role"] == "system":
                heads.append(_text(message.member("content", message.value["content"])))
            else:
                messages.append(message)
    if _is_given(settings, "prompt"):
        messages.append(_message("user", _text(settings["prompt"])))
    if not messages:
        raise StepError("arguments", "there is nothing to ask", hint="Write a `prompt`.")
    return (_joined(heads) if heads else None), messages


def _from_inputs(attempt: Attempt) -> dict[str, Labelled[Any]]:
    """The inputs as a question: their messages or their prompt, else each of them by its name."""
    given = _clean(attempt.given())
    members = {key: given.member(key, value) for key, value in given.value.items()}
    for name in ("messages", "prompt"):
        if _is_given(members, name):
            return {name: members[name]}
    named = [Labelled(f"{key}: {spelled(one.value)}", one.whole) for key, one in members.items()]
    return {"prompt": _joined(named)} if named else {}


def _messages(given: Labelled[Any]) -> Iterator[Labelled[Any]]:
    if not isinstance(given.value, list):
        raise StepError("arguments", f"`messages` is {MESSAGES}, not {a_kind(given.value)}")
    for index, value in enumerate(given.value):
        if not isinstance(value, dict) or value.get("role") not in ROLES or "content" not in value:
            raise StepError("arguments", f"`messages` is {MESSAGES}; number {index + 1} is none")
        message = given.member(index, value)
        yield _message(value["role"], _text(message.member("content", value["content"])), message.label)


def _message(role: str, content: Labelled[str], label: Any = None) -> Labelled[Any]:
    return merge({"role": Labelled(role) if label is None else Labelled(role, label), "content": content})


def _text(given: Labelled[Any]) -> Labelled[str]:
    return Labelled(spelled(given.value), given.whole)


def _joined(texts: list[Labelled[str]]) -> Labelled[str]:
    return Labelled("\n\n".join(one.value for one in texts), merge(list(texts)).whole)


def _clean(given: Labelled[Any]) -> Labelled[Any]:
    return Labelled(delivered(given.value), given.label, given.parts)


def _is_given(settings: Mapping[str, Labelled[Any]], name: str) -> bool:
    return name in settings and settings[name].value is not None


# The answer


def _faults(told: Mapping[str, Any], schema: dict[str, Any] | None) -> list[str]:
    if schema is None:
        return []
    if "value" not in told:
        return ["it is no JSON"]
    return [str(fault) for fault in Schema(schema).faults(told["value"])]


def _again(messages: Labelled[Any], answer: ToolResult, faults: list[str]) -> Labelled[Any]:
    """The conversation with the answer, and what is wrong with it."""
    before = [messages.member(index, one) for index, one in enumerate(messages.value)]
    listed = "\n".join(f"- {fault}" for fault in faults[:_SHOWN])
    asking = f"That does not fit the schema:\n{listed}\nAnswer again, with the whole value."
    said = Labelled(answer.content["text"] or json_text(answer.content.get("value")), answer.label)
    return merge([*before, _message("assistant", said), _message("user", Labelled(asking, answer.label))])


def _misfit(told: Mapping[str, Any], faults: list[str], spent: list[dict[str, Any]]) -> StepError:
    why = "; ".join(faults[:_SHOWN])
    cut = told["stop"] == "length"
    return StepError(
        "model",
        f"the answer of {told['model']} does not fit the schema: {why}{'; it was cut off' if cut else ''}",
        facts={"faults": faults, "_meta": _meta(told, spent)},
        hint="Give it more `maxTokens`." if cut else "",
    )


def _answered(attempt: Attempt, told: dict[str, Any], spent: list[dict[str, Any]]) -> Outcome:
    content = told.get("value", told["text"])
    output = Envelope({"content": content, "_meta": _meta(told, spent)})
    return Outcome(output=Labelled(output, attempt.label), label=attempt.label)


def _meta(told: Mapping[str, Any], spent: list[dict[str, Any]]) -> dict[str, Any]:
    """Who answered, and what all turns of the attempt took together."""
    usage = {name: sum(turn["usage"][name] for turn in spent) for name in told["usage"]}
    costs = [turn["cost"] for turn in spent]
    return {
        "provider": told["provider"],
        "model": told["model"],
        "usage": usage,
        "tokensUsed": usage["totalTokens"],
        "cost": None if None in costs else sum(costs),
        "turns": len(spent),
        "stop": told["stop"],
        "requestId": told["requestId"],
    }
