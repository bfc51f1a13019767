"""Answers that are wrong: errors, results and blocks as no strict reader takes them."""

from __future__ import annotations

from tests.faults.modes.mode import acts, always, mode
from tests.faults.peer import RpcError, encode, text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from typing import Any

    from tests.faults.peer import Call, Json, Peer, Tool

NUMBER: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
"""An output schema."""

BLOCKS: list[Json] = [
    {"type": "text", "text": "downloaded"},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}},
    {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/png", "blob": "iVBORw0="}},
    {"type": "resource_link", "uri": "file:///b.pdf", "name": "b.pdf", "size": 12},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "image", "data": "%%% no base64 %%%", "mimeType": "image/png"},
    {"type": "video", "uri": "file:///c.mp4", "frames": 2},
]

ERRORS: dict[str, Any] = {
    "err_no_message": {"code": -32000},
    "err_text_code": {"code": "E_FAIL", "message": "it broke"},
    "err_no_code": {"message": "it broke"},
    "err_only_text": "it broke",
    "err_empty": {},
    "err_odd_data": {"code": -32000, "message": None, "data": [1, {"a": None}]},
}

RESULTS: dict[str, Json] = {
    "result_null": {"result": None},
    "result_list": {"result": []},
    "result_missing": {},
    "result_and_error": {"result": text("and"), "error": {"code": 1, "message": "both"}},
}

ODD: dict[str, Json] = {
    "no_content": {"structuredContent": {"n": 1}},
    "content_null": {"content": None},
    "content_text": {"content": "just text"},
    "content_object": {"content": {"type": "text", "text": "alone"}},
    "odd_blocks": {"content": [None, "bare", {"text": "untyped"}, {"type": "text", "text": "good"}]},
    "structured_list": text("x", structuredContent=[1, 2]),
    "structured_text": text("x", structuredContent="plain"),
    "nan": text("x", structuredContent={"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 1.5}),
    "bigint": text("x", structuredContent={"n": 10**40, "m": -(2**63) - 1}),
    "empty": {},
}


@mode
def bad_errors(peer: Peer) -> None:
    """Servers that write error objects as they please: a tool for each kind."""
    for name, body in ERRORS.items():
        peer.tool(name, writes(peer, {"error": body}))


@mode
def null_id(peer: Peer) -> None:
    """A server that could not read the request, so its error bears no id."""

    @acts(peer)
    def act(_: Call) -> None:
        peer.write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})


@mode
def null_results(peer: Peer) -> None:
    """A gateway whose engine gave nothing: null, a list or nothing stands where a result should."""
    for name, body in RESULTS.items():
        peer.tool(name, writes(peer, body))


@mode
def doubled_and_unknown(peer: Peer) -> None:
    """A server that answers twice, and answers what nobody asked."""

    @acts(peer)
    def act(call: Call) -> Json:
        for id in (999_999, "nobody", -1, True, 1.5, [1], {"a": 1}):
            peer.result(id, text("for nobody"))
        peer.write(peer.answer_to(call, text("first")))
        return text("second")


@mode
def tool_errors(peer: Peer) -> None:
    """Tools that fail: by their own word, by an empty one, or by an error of the protocol."""
    peer.tool("act", always(text("401 from upstream", isError=True)))
    peer.tool("empty", always({"content": [], "isError": True}))

    def protocol(_: Call) -> None:
        raise RpcError(-32603, "Internal error", {"why": "disk full"})

    peer.tool("protocol", protocol)


@mode
def mixed_blocks(peer: Peer) -> None:
    """A tool that answers with every kind of block there is, and with one of a kind there is not yet."""
    peer.tool("act", always({"content": BLOCKS}))


@mode
def outputs(peer: Peer) -> None:
    """Tools whose structured results break the promise of a schema, or were never promised."""
    peer.tool("missing", always(text("the answer")), outputSchema=NUMBER)
    peer.tool("mismatch", always(text("the answer", structuredContent={"n": "four"})), outputSchema=NUMBER)
    peer.tool("fits", always(text("the answer", structuredContent={"n": 4})), outputSchema=NUMBER)
    peer.tool("failed", always(text("no such file", isError=True)), outputSchema=NUMBER)
    peer.tool("structured_only", always({"content": [], "structuredContent": {"n": 4}}))
    peer.tool("unpromised", always(text("the answer", structuredContent={"n": 4})))


@mode
def odd_results(peer: Peer) -> None:
    """Results with parts missing or null, with numbers that are none, and no end of brackets."""
    for name, result in ODD.items():
        peer.tool(name, always(result))
    for name, value in {
        "long_number": b"9" * 5000,
        "huge_exponent": b"1e999",
        "deep": b"[" * 100_000 + b"]" * 100_000,
    }.items():
        peer.tool(name, with_value(peer, value))


def writes(peer: Peer, body: Json) -> Tool:
    """A tool whose answer has this beside its id."""
    return lambda call: peer.write({"jsonrpc": "2.0", "id": call.id, **body})


def with_value(peer: Peer, value: bytes) -> Tool:
    """A tool that answers with a number or nesting which no encoder here would write."""

    def handler(call: Call) -> None:
        message = encode(peer.answer_to(call, text("x", structuredContent={"n": "?"})))
        peer.raw(message.replace(b'"?"', value) + b"\n")

    return handler
