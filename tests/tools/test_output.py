"""A reply that does not keep its tool's promise is noted and kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from luthier.tools import Reply, Tool
from luthier.tools.output import checked
from luthier.tools.schema import Schema
from luthier.uri import ToolUri

TOOL = Tool(uri=ToolUri.mcp("time", "now"), input_schema={})
PROMISED = Schema({"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]})
TEXT = [{"type": "text", "text": "noon"}]


@pytest.mark.parametrize(
    ("reply", "schema"),
    [
        pytest.param(Reply(structured={"hour": 12}, blocks=TEXT), PROMISED, id="kept"),
        pytest.param(Reply(blocks=TEXT), None, id="nothing promised"),
        pytest.param(Reply(structured={"odd": 1}), None, id="more than promised"),
        pytest.param(Reply(blocks=TEXT, is_error=True), PROMISED, id="an error"),
        pytest.param(Reply(input_required={"requests": {}}), PROMISED, id="a request for input"),
        pytest.param(Reply(structured=None), Schema({"type": "null"}), id="a null that was promised"),
    ],
)
def test_a_promise_that_is_kept_or_was_not_given_leaves_the_reply_as_it_is(
    reply: Reply, schema: Schema | None
) -> None:
    assert checked(reply, TOOL, schema) is reply


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        pytest.param(
            Reply(blocks=TEXT),
            "now declares an output schema, but its result has no structured content.",
            id="77 missing",
        ),
        pytest.param(
            Reply(structured={"hour": "12"}, blocks=TEXT),
            "The structured content of now does not fit its output schema: "
            "/hour: must be an integer, not a string.",
            id="77 mismatched",
        ),
        pytest.param(
            Reply(structured=None),
            "The structured content of now does not fit its output schema: must be an object, not null.",
            id="null",
        ),
    ],
)
def test_a_broken_promise_is_noted_and_nothing_else_is_changed(reply: Reply, note: str) -> None:
    noted = checked(reply, TOOL, PROMISED)
    assert noted.notes == (note,)
    assert msgspec.structs.replace(noted, notes=()) == reply


def test_notes_that_were_there_stay_first() -> None:
    assert checked(Reply(notes=("odd",)), TOOL, PROMISED).notes[0] == "odd"


def test_of_many_faults_a_few_are_told() -> None:
    schema = Schema({"items": {"type": "integer"}})
    (note,) = checked(Reply(structured=["x"] * 3), TOOL, schema).notes
    assert note.count("must be an integer") == 3
    assert "more" not in note
    (note,) = checked(Reply(structured=["x"] * 9), TOOL, schema).notes
    assert note.count("must be an integer") == 3
    assert note.endswith("; and 6 more.")


@pytest.mark.parametrize("definition", [{"type": "strin"}, {"$ref": "http://elsewhere.test/x"}])
def test_a_schema_that_cannot_be_used_is_noted_and_the_reply_kept(definition: dict[str, Any]) -> None:
    reply = Reply(structured={"hour": 12})
    noted = checked(reply, TOOL, Schema(definition))
    assert noted.notes[0].startswith("The output schema of now cannot be used. The schema ")
    assert noted.content == {"hour": 12}
