"""Resources, prompts and completion, as the official client gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, PromptReference, ResourceTemplateReference

from luthier.serve.answer import LABEL
from luthier.serve.shelf import MAX_BYTES
from tests.serve.house import caller

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])
SERVE: dict[str, Any] = {
    "prompts": "prompts",
    "resources": [
        {"uri": "docs://guide", "file": "docs/guide.md", "title": "Guide", "description": "How."},
        {"uri": "docs://dot", "file": "docs/dot.png"},
        {"uri": "docs://odd", "file": "docs/odd"},
        {"uri": "docs://lie", "file": "docs/lie.txt"},
        {"uri": "docs://large", "file": "docs/large.txt"},
        {"uri": "docs://gone", "file": "docs/gone.txt"},
        {"uri": "docs://out", "file": "docs/out.txt"},
        {"uri": "docs://state", "file": ".luthier/luthier.db"},
        {"uri": "docs://boss", "file": "docs/guide.md", "clients": ["boss"]},
        {
            "uri": "parts://{part}/{page}",
            "file": "parts/{part}-{page}.json",
            "variables": {"part": {"enum": ["one", "two"]}, "page": None},
        },
    ],
}
PROMPTS = {
    "plain.yaml": "text: Just this.\n",
    "review.yaml": """
description: Reviews.
title: Review
arguments:
  code: {required: true, description: What., title: The code}
  tone: {enum: [kind, kinder, harsh]}
messages:
  - "Review ${input.code} ${input.tone ?? 'kindly'}."
  - {role: assistant, text: Gladly.}
  - {resource: "docs://guide"}
  - {file: docs/dot.png}
  - {file: docs/guide.md}
  - {file: docs/odd}
""",
    "choice.yaml": "arguments: {tone: {required: true, enum: [kind, harsh]}}\ntext: ${input.tone}\n",
    "lost.yaml": 'arguments: {uri: {required: true}}\nmessages: [{resource: "${input.uri}"}]\n',
    "gone.yaml": "messages: [{file: docs/gone.txt}]\n",
    "fails.yaml": "text: \"${input.tone.slice('a')}\"\narguments: {tone: null}\n",
    "boss.yaml": "text: Hush.\nclients: [boss]\n",
    "twin.yaml": "name: plain\ntext: The second of this name.\n",
    "broken.yaml": "messages: 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("docs", "parts", "prompts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n")
    (tmp_path / "docs" / "dot.png").write_bytes(b"\x89PNG")
    (tmp_path / "docs" / "odd").write_bytes(b"\xff\xfe\xfd")
    (tmp_path / "docs" / "lie.txt").write_bytes(b"\xff\xfe\xfd")
    (tmp_path / "docs" / "large.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "docs" / "out.txt").symlink_to("/etc/hostname")
    (tmp_path / "parts" / "one-1.json").write_text("{}")
    (tmp_path / "parts" / "three-1.json").write_text("{}")
    (tmp_path / "parts" / "secret.json").write_text("{}")
    for name, said in PROMPTS.items():
        (tmp_path / "prompts" / name).write_text(said)
    return tmp_path


@BOTH
async def test_resources_and_templates_are_listed(root: Path, mode: str) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        listed = (await peer.list_resources()).resources
        (template,) = (await peer.list_resource_templates()).resource_templates
    guide = listed[0]
    assert (str(guide.uri), guide.name, guide.title) == ("docs://guide", "guide.md", "Guide")
    assert (guide.description, guide.mime_type) == ("How.", "text/markdown")
    assert "docs://boss" not in [str(one.uri) for one in listed]
    assert template.uri_template == "parts://{part}/{page}"


@BOTH
@pytest.mark.parametrize(
    ("uri", "mime", "text"),
    [
        ("docs://guide", "text/markdown", "# Guide\n"),
        ("docs://dot", "image/png", None),
        ("docs://odd", "application/octet-stream", None),
        ("docs://lie", "text/plain", None),
        ("parts://one/1", "application/json", "{}"),
    ],
)
async def test_a_resource_is_read_as_what_it_is(
    root: Path, mode: str, uri: str, mime: str, text: str | None
) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        (found,) = (await peer.read_resource(uri)).contents
    assert (str(found.uri), found.mime_type, getattr(found, "text", None)) == (uri, mime, text)
    assert found.meta is not None
    assert found.meta[LABEL]["integrity"] == "trusted"


@BOTH
@pytest.mark.parametrize(
    "uri",
    [
        "docs://none",
        "docs://gone",
        "docs://out",
        "docs://state",
        "docs://boss",
        "parts://three/1",
        "parts://two/1",
        "parts://one/..%2F1",
        "parts://one/.1",
        "parts://one",
    ],
)
async def test_what_is_not_there_or_not_for_them_is_answered_alike(root: Path, mode: str, uri: str) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError) as caught:
            await peer.read_resource(uri)
    code = -32002 if mode == "legacy" else -32602
    assert (caught.value.code, caught.value.message) == (code, "Resource not found")
    assert caught.value.data == {"uri": uri}


async def test_what_is_too_large_says_so(root: Path) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError, match="larger than 10 MiB"):
            await peer.read_resource("docs://large")


async def test_a_token_of_a_trigger_reads_nothing(root: Path) -> None:
    async with caller(root, "trigger/x", serve=SERVE) as (peer, _):
        assert (await peer.list_resources()).resources == []
        assert (await peer.list_prompts()).prompts == []
        with pytest.raises(MCPError):
            await peer.read_resource("docs://guide")
        with pytest.raises(MCPError):
            await peer.get_prompt("plain")


@BOTH
async def test_prompts_are_listed_and_a_broken_one_costs_itself_only(root: Path, mode: str) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        listed = {prompt.name: prompt for prompt in (await peer.list_prompts()).prompts}
    assert set(listed) == {"plain", "review", "choice", "lost", "gone", "fails"}
    code, tone = listed["review"].arguments or []
    assert (code.name, code.title, code.description, code.required) == ("code", "The code", "What.", True)
    assert (tone.name, tone.required) == ("tone", False)


@BOTH
async def test_a_prompt_is_filled_in(root: Path, mode: str) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        found = await peer.get_prompt("review", {"code": "x = 1"})
    told = [message.model_dump(mode="json", exclude_none=True) for message in found.messages]
    kinds = [one["content"]["type"] for one in told]
    assert kinds == ["text", "text", "resource", "image", "text", "resource"]
    assert told[0]["content"]["text"] == "Review x = 1 kindly."
    assert told[1]["role"] == "assistant"
    assert told[2]["content"]["resource"]["text"] == "# Guide\n"
    assert found.description == "Reviews."


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("none", {}, "Unknown prompt: none"),
        ("boss", {}, "Unknown prompt: boss"),
        ("review", {}, "the argument 'code' is missing"),
        ("review", {"code": "x", "tone": "rude"}, "the argument 'tone' must be one of kind, kinder, harsh"),
        ("review", {"code": "x", "mood": "y"}, "the prompt review has no argument 'mood'"),
        ("lost", {"uri": "docs://boss"}, "There is no resource 'docs://boss'."),
    ],
)
async def test_what_does_not_fit_is_told(root: Path, name: str, given: dict[str, str], said: str) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError) as caught:
            await peer.get_prompt(name, given)
    assert (caught.value.code, caught.value.message) == (-32602, said)


@pytest.mark.parametrize(("name", "given", "code"), [("gone", {}, -32603), ("fails", {"tone": "x"}, -32602)])
async def test_a_prompt_that_cannot_be_filled_in_is_refused(
    root: Path, name: str, given: dict[str, str], code: int
) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError) as caught:
            await peer.get_prompt(name, given)
    assert caught.value.code == code


@BOTH
async def test_arguments_that_are_missing_are_asked_for(root: Path, mode: str) -> None:
    asked: list[Any] = []

    async def person(_: Any, params: Any) -> ElicitResult:
        asked.append(params.requested_schema)
        return ElicitResult(action="accept", content={"tone": "harsh"})

    async with caller(root, mode=mode, serve=SERVE, elicitation_callback=person) as (peer, _):
        found = await peer.get_prompt("choice")
    assert found.messages[0].content.text == "harsh"  # type: ignore[union-attr]
    assert asked[0]["properties"] == {"tone": {"type": "string", "enum": ["kind", "harsh"]}}


async def test_whoever_gives_none_gets_no_prompt(root: Path) -> None:
    async def person(_: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async with caller(root, serve=SERVE, elicitation_callback=person) as (peer, _):
        with pytest.raises(MCPError, match="were not given"):
            await peer.get_prompt("choice")


async def test_a_prompt_that_has_changed_is_read_anew(root: Path) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        await peer.get_prompt("plain")
        (root / "prompts" / "plain.yaml").write_text("text: Something else.\n")
        found = await peer.get_prompt("plain")
    assert found.messages[0].content.text == "Something else."  # type: ignore[union-attr]


@BOTH
@pytest.mark.parametrize(
    ("ref", "name", "begun", "values"),
    [
        (PromptReference(name="review"), "tone", "k", ["kind", "kinder"]),
        (PromptReference(name="review"), "tone", "", ["kind", "kinder", "harsh"]),
        (PromptReference(name="review"), "code", "x", []),
        (PromptReference(name="review"), "mood", "x", []),
        (ResourceTemplateReference(uri="parts://{part}/{page}"), "part", "t", ["two"]),
        (ResourceTemplateReference(uri="docs://guide"), "part", "", []),
    ],
)
async def test_choices_are_completed(
    root: Path, mode: str, ref: Any, name: str, begun: str, values: list[str]
) -> None:
    async with caller(root, mode=mode, serve=SERVE) as (peer, _):
        found = await peer.complete(ref, {"name": name, "value": begun})
    assert found.completion.values == values


@pytest.mark.parametrize("ref", [PromptReference(name="boss"), ResourceTemplateReference(uri="docs://boss")])
async def test_what_they_may_not_know_is_not_completed(root: Path, ref: Any) -> None:
    async with caller(root, serve=SERVE) as (peer, _):
        with pytest.raises(MCPError, match="Unknown"):
            await peer.complete(ref, {"name": "x", "value": ""})
