"""What FastMCP's client makes of a server: run by FastMCP's own interpreter, it prints what it saw as JSON.

`python fastmcp_client.py ERA http URL TOKEN` or `… ERA stdio COMMAND ARG…`
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

# By name, as the type checker's environment does not hold it.
fastmcp: Any = import_module("fastmcp")
transports: Any = import_module("fastmcp.client.transports")


async def seen(client: Any) -> dict[str, Any]:
    told: list[Any] = []
    begun = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append([done, total, message])
        begun.set()

    async with client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        call = await client.call_tool("greeting", {"name": "Ada"}, progress_handler=progress)
        wrong = await client.call_tool("greeting", {"name": 1}, raise_on_error=False)
        error = await client.call_tool("test_error_handling", raise_on_error=False)
        asked = await client.call_tool("test_input_required_result_elicitation")
        steps, told[:] = list(told), []
        begun.clear()
        endless = asyncio.create_task(client.call_tool("test_never_ends", progress_handler=progress))
        await begun.wait()
        endless.cancel()
        with suppress(asyncio.CancelledError):
            await endless
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        (resource,) = await client.read_resource("test://static-text")
    return {
        "tools": sorted(tools),
        "promise": tools["greeting"].output_schema,
        "structured": call.structured_content,
        "meta": sorted((call.meta or {}).keys()),
        "steps": steps,
        "wrong": wrong.is_error,
        "error": [error.is_error, error.content[0].text],
        "asked": asked.content[0].text,
        "prompt": prompt.messages[0].content.text,
        "resource": resource.text,
    }


async def person(message: str, *_: Any) -> dict[str, str]:
    return {"name": message}


def client_of(era: str, how: str, *rest: str) -> Any:
    if how == "http":
        url, token = rest
        transport: Any = transports.StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    else:
        transport = transports.StdioTransport(rest[0], list(rest[1:]))
    return fastmcp.Client(transport, mode=era, elicitation_handler=person)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(seen(client_of(*sys.argv[1:])))))
