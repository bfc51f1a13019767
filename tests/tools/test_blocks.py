"""Content blocks, as the protocol has them."""

from __future__ import annotations

from mcp_types import CallToolResult

from luthier.tools.blocks import audio, image, resource, text


def test_blocks_are_what_the_protocol_reads() -> None:
    blocks = [
        text("a"),
        image(b"a", "image/png"),
        audio(b"a", "audio/wav"),
        resource("x://a", "a", "text/plain"),
        resource("x://a", b"a", "image/png"),
    ]
    read = CallToolResult.model_validate({"content": blocks}).content
    assert [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in read] == blocks
