"""The tools of the suite that ask the client something, in the middle of a call or over several requests."""

import asyncio
from typing import Any

from luthier import Caller, tool

NAME = {"name": {"type": "string"}}
OK = {"ok": {"type": "boolean"}}


@tool
async def test_sampling(prompt: str, caller: Caller) -> str:
    """Asks the client's model."""
    return f"LLM response: {(await caller.sample(prompt, 100)).text}"


@tool
async def test_elicitation(message: str, caller: Caller) -> str:
    """Asks the person for a name and an address."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    reaction = await caller.elicit(message, fields)
    return f"User response: <action: {reaction.action}, content: {reaction.content}>"


@tool
async def test_elicitation_sep1034_defaults(caller: Caller) -> str:
    """Asks for plain values of every kind, each with a default."""
    return await completed(
        caller,
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


@tool
async def test_elicitation_sep1330_enums(caller: Caller) -> str:
    """Asks for choices, in every way that they are written."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{at}", "title": f"{word} Option"} for at, word in named("First Second Third")]
    choices = [{"const": f"value{at}", "title": f"{word} Choice"} for at, word in named("First Second Third")]
    old = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    return await completed(
        caller,
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", **old},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": choices}},
        },
    )


def named(words: str) -> list[tuple[int, str]]:
    return list(enumerate(words.split(), 1))


async def completed(caller: Caller, fields: dict[str, Any]) -> str:
    reaction = await caller.elicit("Please fill this in.", fields, required=[])
    return f"Elicitation completed: action={reaction.action}, content={reaction.content}"


@tool
async def test_missing_capability(caller: Caller) -> str:
    """Cannot do without the client's model."""
    return (await caller.sample("Say something.", 10)).text


@tool
async def test_streaming_elicitation(caller: Caller) -> str:
    """Tells of progress, then asks."""
    await caller.progress(1, 2)
    return str((await caller.elicit("Go on?", OK)).content)


@tool
async def test_input_required_result_elicitation(caller: Caller) -> str:
    """Asks for a name."""
    reaction = await caller.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {reaction.content.get('name', 'whoever you are')}!"


@tool
async def test_input_required_result_sampling(caller: Caller) -> str:
    """Asks the client's model for a capital."""
    return (await caller.sample("What is the capital of France?", 100, key="capital_question")).text


@tool
async def test_input_required_result_list_roots(caller: Caller) -> str:
    """Asks for the client's folders."""
    return f"Roots: {[root['uri'] for root in await caller.roots(key='client_roots')]}"


@tool
async def test_input_required_result_request_state(caller: Caller) -> str:
    """Asks, and knows what it asked about."""
    reaction = await caller.elicit("Please confirm", OK, key="confirm")
    return f"state-ok: {reaction.action}"


@tool
async def test_input_required_result_tampered_state(caller: Caller) -> str:
    """Asks, and takes the answer to nothing else."""
    return (await caller.elicit("Please confirm", OK, key="confirm")).action


@tool
async def test_input_required_result_multiple_inputs(caller: Caller) -> str:
    """Asks for several things at once."""
    name, greeting, roots = await asyncio.gather(
        caller.elicit("What is your name?", NAME, key="user_name"),
        caller.sample("Generate a greeting", 50, key="greeting"),
        caller.roots(key="client_roots"),
    )
    return f"{greeting.text} {name.content} {len(roots)}"


@tool
async def test_input_required_result_multi_round(caller: Caller) -> str:
    """Asks for one thing after the other."""
    name = await caller.elicit("Step 1: What is your name?", NAME, key="step1")
    color = await caller.elicit(
        "Step 2: What is your favorite color?", {"color": {"type": "string"}}, key="step2"
    )
    return f"{name.content} likes {color.content}."


@tool
async def test_input_required_result_capabilities(caller: Caller) -> str:
    """Asks whoever can be asked."""
    if caller.can("elicitation"):
        return (await caller.elicit("Please confirm", OK)).action
    return (await caller.sample("Please confirm", 10)).text
