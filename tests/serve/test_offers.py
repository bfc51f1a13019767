"""What is offered: names, schemas from declared inputs, and who may know of it."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.errors import SpecError
from luthier.serve.offers import STDIO, Offer, input_schema, offers_of
from luthier.spec import Ensemble, read_ensemble

STEPS = [{"name": "a", "operation": "transform", "config": {"value": 1}}]


def ensemble(**more: Any) -> Ensemble:
    return read_ensemble({"ensemble": "e", "agents": STEPS, **more})


def offer(**trigger: Any) -> Offer:
    (found,) = offers_of([ensemble(trigger={"type": "mcp", **trigger})])
    return found


def test_an_ensemble_without_a_trigger_is_not_offered() -> None:
    assert offers_of([ensemble()]) == ()


def test_the_name_and_the_words_are_the_triggers_else_the_ensembles() -> None:
    assert (offer().name, offer().description) == ("e", "Execute the e ensemble")
    told = offers_of([ensemble(description="D", trigger={"type": "mcp"})])
    assert told[0].description == "D"
    named = offer(toolName="n", description="T")
    assert (named.name, named.description) == ("n", "T")


def test_an_ensemble_may_be_offered_twice_under_two_names() -> None:
    both = [{"type": "mcp", "name": "b"}, {"type": "mcp", "name": "a"}]
    assert [one.name for one in offers_of([ensemble(trigger=both)])] == ["a", "b"]


def test_two_tools_of_one_name_are_a_fault() -> None:
    with pytest.raises(SpecError, match="two tools are offered as 'e'"):
        offers_of([ensemble(trigger=[{"type": "mcp"}, {"type": "mcp"}])])


def test_the_schema_of_inputs_says_what_was_declared() -> None:
    declared = {
        "owner": {"type": "string", "required": True, "description": "Who."},
        "kind": {"enum": ["a", "b"], "default": "a"},
        "count": "integer",
        "later": {"type": "string", "default": "${input.owner}"},
        "free": 5,
    }
    assert input_schema(ensemble(inputs=declared)) == {
        "type": "object",
        "properties": {
            "owner": {"description": "Who.", "type": "string"},
            "kind": {"description": "Input field: kind", "enum": ["a", "b"], "default": "a"},
            "count": {"description": "Input field: count", "type": "integer"},
            "later": {"description": "Input field: later", "type": "string"},
            "free": {"description": "Input field: free", "default": 5},
        },
        "required": ["owner"],
    }
    assert input_schema(ensemble()) == {"type": "object", "properties": {}}


HASH = "sha256:" + "0" * 64
TOKEN = {"auth": {"type": "bearer", "token": HASH}}


@pytest.mark.parametrize(
    ("trigger", "client", "seen"),
    [
        ({}, "desktop", True),
        ({}, STDIO, True),
        ({"clients": ["ci"]}, "ci", True),
        ({"clients": ["ci"]}, "desktop", False),
        ({"clients": ["ci"]}, STDIO, False),
        ({"clients": []}, "ci", False),
        (TOKEN, "desktop", False),
        (TOKEN, "trigger/e", True),
        (TOKEN, "trigger/other", False),
        (TOKEN, STDIO, True),
        ({**TOKEN, "clients": ["ci"]}, "ci", True),
        ({**TOKEN, "clients": ["ci"]}, "trigger/e", True),
        ({"auth": {"type": "oauth"}}, "desktop", False),
        ({}, "trigger/other", False),
    ],
)
def test_who_may_know_of_an_offer(trigger: dict[str, Any], client: str, *, seen: bool) -> None:
    assert offer(**trigger).is_for(client) is seen
