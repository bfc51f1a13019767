"""The same bare client for everybody: JSON-RPC by aiohttp, a revision with its session or one without.

usage: hop.py URL VERSION TOOL [TOKEN]
"""

import asyncio
import json
import statistics
import sys
import time

import aiohttp

URL, VERSION, TOOL, *TOKEN = sys.argv[1:]
MODERN = VERSION >= "2026"
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    **({"Authorization": f"Bearer {TOKEN[0]}"} if TOKEN else {}),
}
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INFO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._headers = dict(HEADERS)
        self._number = 0

    async def begin(self) -> None:
        if MODERN:
            self._headers |= {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": TOOL}
            return
        headers, _ = await self._post("initialize", INFO)
        if "Mcp-Session-Id" in headers:
            self._headers["Mcp-Session-Id"] = headers["Mcp-Session-Id"]
        self._headers["MCP-Protocol-Version"] = VERSION
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        async with self._session.post(URL, json=message, headers=self._headers) as response:
            await response.read()

    async def call(self, number: int) -> None:
        text = f"hello world {number}"
        call = {"name": TOOL, "arguments": {"text": text}, **({"_meta": META} if MODERN else {})}
        _, answer = await self._post("tools/call", call)
        if answer.get("result", {}).get("content") != [{"type": "text", "text": text}]:
            raise SystemExit(f"this came out: {answer}")

    async def _post(self, method: str, params: object) -> tuple[object, dict[str, object]]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        body = json.dumps(message).encode()
        async with self._session.post(URL, data=body, headers=self._headers) as response:
            text = await response.read()
            if response.content_type == "text/event-stream":
                text = next(line[5:] for line in text.splitlines()[::-1] if line.startswith(b"data:"))
            return response.headers, json.loads(text)


async def main() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = Client(session)
        await client.begin()
        for number in range(30):
            await client.call(number)
        print(json.dumps({"ready": True}), flush=True)
        while (words := (await asyncio.to_thread(sys.stdin.readline)).split()) and words[0] != "quit":
            count = int(words[-1])
            lanes = int(words[1]) if words[0] == "many" else 1
            took: list[float] = []

            async def lane(lane: int, lanes: int, count: int, took: list[float]) -> None:
                for number in range(lane, count, lanes):
                    begun = time.perf_counter()
                    await client.call(number)
                    took.append(time.perf_counter() - begun)

            wall = time.perf_counter()
            await asyncio.gather(*(lane(number, lanes, count, took) for number in range(lanes)))
            spent = {"calls": count, "wall": time.perf_counter() - wall, "p50": statistics.median(took)}
            print(json.dumps(spent), flush=True)


asyncio.run(main())
