"""Headers given with a call: who may be given which, and that their values are written down nowhere."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from luthier import Refused, Runtime
from luthier.errors import HttpError
from luthier.secrets import Secret
from luthier.taint import Labelled
from luthier.testing import MemoryAudit, MemoryServer
from luthier.tools import ToolCall
from luthier.uri import ToolUri
from tests.wire.auth.authority import running
from tests.wire.http.support import Answering, Asked, Site, bounded, modern

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.events import Event

CANARY = "user-canary-0451"
ADA = {"Authorization": f"Bearer {CANARY}"}


def opened(site: Site, root: Path, entry: dict[str, Any] | None = None, **parts: Any) -> Runtime:
    lute = {"url": site.url, "max_retries": 0, **(entry or {})}
    return Runtime.open({"mcpServers": {"lute": lute}}, root=root, **parts)


def kept_below(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def test_they_reach_the_server_with_the_call_they_were_given_with(tmp_path: Path) -> None:
    async with Site(modern) as site, opened(site, tmp_path) as rt:
        result = await bounded(rt.call("mcp://lute/echo", call_headers=ADA, text="hi"))
        assert result.content == "hi"
        assert site.asked[-1].headers["authorization"] == f"Bearer {CANARY}"
        secret = {"X-Tenant": Secret(" t1 ")}
        await bounded(rt.call("mcp://lute/echo", {"headers": {"a": 1}}, call_headers=secret))
        assert site.asked[-1].headers["x-tenant"] == "t1"
        assert site.asked[-1].json["params"]["arguments"] == {"headers": {"a": 1}}
        assert "authorization" not in site.asked[-1].headers


async def test_a_refused_token_of_a_caller_brings_no_other_token_of_the_entry(tmp_path: Path) -> None:
    async with running() as authority:

        def guarded(asked: Asked, out: Answering) -> None:
            token = asked.headers.get("authorization", "").removeprefix("Bearer ")
            if token in authority.live:
                modern(asked, out)
            else:
                out.give(401)

        auth = {
            "type": "oauth",
            "clientId": "me",
            "clientSecret": "s",
            "tokenUrl": f"{authority.issuer}/token",
        }
        async with Site(guarded) as site, opened(site, tmp_path, {"auth": auth}) as rt:
            await bounded(rt.call("mcp://lute/echo", text="own"))
            asked = len(authority.asked)
            with pytest.raises(HttpError, match="with the credentials given for this call"):
                await bounded(rt.call("mcp://lute/echo", call_headers=ADA))
            assert (len(authority.asked), len(authority.live)) == (asked, 1)
            await bounded(rt.call("mcp://lute/echo", text="own"))


async def test_their_values_are_written_down_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []

    class Ear:
        def notify(self, event: Event) -> None:
            events.append(event)

    def echoing(asked: Asked, out: Answering) -> None:
        if asked.rpc == "tools/call" and asked.json["params"]["arguments"].get("fail"):
            out.give(500, f"cannot serve {asked.headers['authorization']}".encode(), kind="text/plain")
        else:
            modern(asked, out)

    caplog.set_level(logging.DEBUG)
    async with Site(echoing) as site, opened(site, tmp_path, observers=[Ear()]) as rt:
        await bounded(rt.call("mcp://lute/echo", call_headers=ADA, text="hi"))
        with pytest.raises(HttpError) as caught:
            await bounded(rt.call("mcp://lute/echo", call_headers=ADA, fail=True))
    error = caught.value
    assert error.answer.excerpt == "cannot serve [redacted]"
    assert CANARY not in f"{error} {error!r} {vars(error)} {error.facts()}"
    assert CANARY not in repr(events)
    assert CANARY not in caplog.text
    written = kept_below(tmp_path)
    assert any("audit" in name for name in written)
    assert [name for name, data in written.items() if CANARY.encode() in data] == []


def test_a_call_shows_the_names_of_its_headers_only() -> None:
    call = ToolCall(
        id="c1", uri=ToolUri.mcp("lute", "echo"), arguments=Labelled({}), headers={"X-Key": Secret(CANARY)}
    )
    assert "X-Key" in repr(call)
    assert CANARY not in repr(call)
    with pytest.raises(TypeError):
        msgspec.json.encode(call.headers)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({name: "x"}, f"the header {name} is Luthier's own to write")
        for name in (
            "Host", "content-length", "Content-Type", "ACCEPT", "Transfer-Encoding", "Connection", "Expect",
            "Last-Event-ID", "Proxy-Authorization", "X-Conductor-Signature",
        )
    ]
    + [
        ({name: "x"}, f"the header {name} is the protocol's own")
        for name in ("Mcp-Session-Id", "MCP-Protocol-Version", "mcp-method", "Mcp-Param-Region")
    ]
    + [
        ({"X Key": "x"}, "'X Key' is not a name of a header"),
        ({"": "x"}, "'' is not a name of a header"),
        ({3: "x"}, "3 is not a name of a header"),
        ({"X-Key": f"{CANARY}\r\nHost: elsewhere"}, "X-Key holds a line break"),
        ({"X-Key": f"{CANARY}\udcff"}, "X-Key holds a line break or a control character"),
        ({"X-Key": "  "}, "the value of the header X-Key is empty"),
        ({"X-Key": 7}, "the value of the header X-Key is not text"),
        ({"X-Key": "1", "x-key": "2"}, "the header x-key is given twice"),
    ],
)  # fmt: skip
async def test_what_may_not_be_given_is_refused_before_anything_is_sent(
    headers: dict[Any, Any], said: str, tmp_path: Path
) -> None:
    audit = MemoryAudit()
    async with Site(modern) as site, opened(site, tmp_path, audit=audit) as rt:
        with pytest.raises(Refused) as caught:
            await bounded(rt.call("mcp://lute/echo", call_headers=headers))
        assert said in caught.value.reason
        assert (caught.value.refusal_kind, caught.value.rule) == ("arguments", "headers")
        assert CANARY not in f"{caught.value} {audit.records}"
        assert site.asked == []
    assert [type(record).__name__ for record in audit.records] == ["Verdict"]


@pytest.mark.parametrize("uri", ["mcp://pipe/echo", "mcp://near/echo", "builtin://save_to_memory"])
async def test_what_is_not_reached_by_http_takes_no_headers_and_is_not_started(
    uri: str, tmp_path: Path
) -> None:
    near = MemoryServer("near", {"echo": "x"})
    servers = {
        "pipe": {"command": "python", "args": ["none.py"]},
        "near": {"url": "https://near.example/mcp"},
    }
    async with Runtime.open(
        {"mcpServers": servers}, root=tmp_path, transports={"near": near.transport}
    ) as rt:
        with pytest.raises(Refused, match="is not reached by HTTP") as caught:
            await bounded(rt.call(uri, call_headers=ADA))
        assert "`url`" in caught.value.hint
    assert near.connections == 0
