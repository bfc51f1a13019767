"""What a server says of itself and of its tools is never fetched, whatever it is a link to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.errors import LuthierError
from tests.connect.canary import Canary
from tests.wire.http.support import Answering, Asked, Site, answer, bounded, modern_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ARGUMENTS = {"text": "hi"}


def definitions(base: str) -> list[dict[str, Any]]:
    """One tool for each place at which a definition may hold a link."""
    icons = [{"src": f"{base}/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    schemas: dict[str, Any] = {
        "plain": text,
        "ref": {"type": "object", "properties": {"text": {"$ref": f"{base}/text.json"}}},
        "root_ref": {"type": "object", "$ref": f"{base}/root.json"},
        "relative_ref": {**text, "$id": f"{base}/own.json", "allOf": [{"$ref": "other.json#/$defs/x"}]},
        "dynamic_ref": {"type": "object", "properties": {"text": {"$dynamicRef": f"{base}/text.json#x"}}},
        "recursive_ref": {
            **text,
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveRef": base,
        },
        "file_ref": {**text, "allOf": [{"$ref": "file:///etc/hostname"}]},
        "dialect": {**text, "$schema": f"{base}/schema.json"},
        "vocabulary": {**text, "$vocabulary": {f"{base}/vocabulary": True}},
        "old_ref": {
            **text,
            "$schema": "http://json-schema.org/draft-07/schema#",
            "not": {"$ref": f"{base}/x.json"},
        },
    }
    return [
        {
            "name": name,
            "description": f"See {base}/more and ![picture]({base}/picture.png)",
            "inputSchema": schema,
            "icons": icons,
            "_meta": {"docs": f"{base}/docs"},
        }
        for name, schema in schemas.items()
    ] + [
        {
            "name": "output",
            "inputSchema": text,
            "outputSchema": {"type": "object", "$ref": f"{base}/out.json"},
        },
    ]


def content(base: str) -> list[dict[str, Any]]:
    return [
        {"type": "resource_link", "uri": f"{base}/file.txt", "name": "file", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": f"{base}/inside.txt", "text": "inside"}},
        {"type": "text", "text": f"![picture]({base}/picture.png)", "annotations": {"audience": ["user"]}},
    ]


def linking(base: str) -> Callable[[Asked, Answering], None]:
    def serve(asked: Asked, out: Answering) -> None:
        id_ = asked.json.get("id")
        if asked.rpc == "server/discover":
            icons = [{"src": f"{base}/server.png"}]
            info = {"name": "x", "version": "1", "title": "X", "websiteUrl": f"{base}/home", "icons": icons}
            found = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": info,
                "instructions": f"Read {base}/instructions first.",
                "resultType": "complete",
            }
            out.give(body=answer(id_, found))
        elif asked.rpc == "tools/list":
            out.give(body=answer(id_, {"tools": definitions(base)}))
        elif asked.rpc == "tools/call":
            out.give(body=answer(id_, {"content": content(base), "structuredContent": {"uri": f"{base}/x"}}))
        else:
            out.give(body=modern_result(asked))

    return serve


async def outcome(rt: Runtime, name: str) -> str:
    """What became of a tool that is looked at and called."""
    uri = f"mcp://far/{name}"
    assert (await bounded(rt.describe(uri))).name == name
    try:
        await bounded(rt.call(uri, ARGUMENTS))
    except LuthierError as error:
        return str(error)
    return "answered"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_link_in_a_definition_or_a_result_is_followed(
    scheme: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    async with Canary() as canary:
        base = f"{scheme}://127.0.0.1:{canary.port}"
        names = [tool["name"] for tool in definitions(base)]
        async with Site(linking(base)) as site:
            entry = {"url": site.url, "transport": "http", "allow_private": True, "max_retries": 0}
            async with Runtime.open({"mcpServers": {"far": entry}}, root=tmp_path) as rt:
                outcomes = {name: await outcome(rt, name) for name in names}
            called = site.rpcs().count("tools/call")
        heard = await canary.heard()
    figure(f"G7: {len(names)} definitions with links by {scheme}, {called} calls, {heard} connections")
    assert heard == 0
    refused = {name: said for name, said in outcomes.items() if said != "answered"}
    assert set(refused) == {"ref", "root_ref", "relative_ref", "dynamic_ref", "file_ref", "old_ref"}
    assert all("cannot be judged" in said for said in refused.values())
