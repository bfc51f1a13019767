"""The tools that the conformance suite calls by name: what they give, and what they tell meanwhile."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from luthier import Caller, tool
from luthier.tools import Reply
from luthier.tools.blocks import audio, image, resource, text

ROOT = Path(__file__).parent.parent
PNG = (ROOT / "files" / "dot.png").read_bytes()
WAV = (ROOT / "files" / "click.wav").read_bytes()


@tool
def test_simple_text() -> str:
    """Gives a text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Reply:
    """Gives a picture."""
    return Reply(blocks=[image(PNG, "image/png")])


@tool
def test_audio_content() -> Reply:
    """Gives a sound."""
    return Reply(blocks=[audio(WAV, "audio/wav")])


@tool
def test_embedded_resource() -> Reply:
    """Gives a document."""
    said = "This is an embedded resource content."
    return Reply(blocks=[resource("test://embedded-resource", said, "text/plain")])


@tool
def test_multiple_content_types() -> Reply:
    """Gives several things."""
    document = resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return Reply(blocks=[text("Multiple content types test:"), image(PNG, "image/png"), document])


@tool
def test_error_handling() -> str:
    """Fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_logging(caller: Caller) -> str:
    """Tells the log of what it does."""
    await caller.log("Tool execution started")
    await asyncio.sleep(0.05)
    await caller.log("Tool processing data")
    await asyncio.sleep(0.05)
    await caller.log("Tool execution completed")
    return "Told three times."


@tool
async def test_logging_tool(caller: Caller) -> str:
    """Tells the log, wherever that is wanted."""
    await caller.log("You asked for this.")
    return "Told."


@tool
async def test_tool_with_progress(caller: Caller) -> str:
    """Tells how far it is."""
    for done in (0, 50, 100):
        await caller.progress(done, 100)
        await asyncio.sleep(0.05)
    return "Done."


@tool
def test_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Has an argument that goes along in a header as well."""
    return region


@tool
def test_trigger_tool_change() -> str:
    """Adds an ensemble to the project, which is offered as a tool."""
    (ROOT / "ensembles").mkdir(exist_ok=True)
    return _changed(
        ROOT / "ensembles",
        "trigger: {type: mcp}\nagents:\n  - {name: one, operation: transform, config: {value: 1}}\n",
    )


@tool
def test_trigger_prompt_change() -> str:
    """Adds a prompt to the project."""
    return _changed(ROOT / "prompts", "description: One more.\ntext: One more.\n")


def _changed(folder: Path, said: str) -> str:
    number = len(list(folder.iterdir()))
    (folder / f"more_{number}.yaml").write_text(said, encoding="utf-8")
    return f"Wrote {number}."


@tool(timeout=None)
async def test_never_ends(caller: Caller) -> str:
    """Says that it has begun, and goes on until it is called off, which it writes down."""
    (ROOT / "begun").touch()
    await caller.progress(1, 2, "begun")
    try:
        await asyncio.Event().wait()
    finally:
        (ROOT / "called_off").touch()
    return "never"
