"""What stands on stdout and stderr besides messages, and how messages are written."""

from __future__ import annotations

import json
import os

from tests.faults.modes.mode import acts, mode
from tests.faults.peer import encode, text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from tests.faults.peer import Call, Json, Peer

BOM = b"\xef\xbb\xbf"
FLOOD = b"debug debug debug\n" * (1024 * 1024 // 18)
"""Far more than a pipe holds."""


@mode
def banner(peer: Peer) -> None:
    """A server that greets people on stdout before it speaks the protocol."""
    peer.raw(b"Starting faulty v1.0 ...\n[INFO] ready {}\n")


@mode
def stdout_noise_in_call(peer: Peer) -> None:
    """A tool whose author left print statements in it; some of what it prints is even JSON."""

    @acts(peer)
    def act(_: Call) -> Json:
        for _n in range(100):
            peer.raw(b'working ...\n{"level": "info"}\n[1, 2]\n42\nnull\n{"jsonrpc": "2.0"}\n')
        return text("done")


@mode
def bom(peer: Peer) -> None:
    """A Windows program whose output carries a byte order mark; and text that rightly begins with one."""
    peer.raw(BOM)

    @acts(peer)
    def act(_: Call) -> Json:
        peer.raw(BOM)
        return text("\ufeffkept")


@mode
def crlf(peer: Peer) -> None:
    """A Windows program that ends its lines with carriage return and newline."""
    peer.write = lambda message: peer.raw(encode(message) + b"\r\n")


@mode
def blank_lines(peer: Peer) -> None:
    """A server that puts empty lines around its messages."""
    peer.write = lambda message: peer.raw(b"\n\r\n" + encode(message) + b"\n \n\n")


@mode
def foreign_locale(peer: Peer) -> None:
    """A server under a locale of one byte a character, which shows as hex what it really was told."""

    @acts(peer)
    def act(call: Call) -> Json:
        said = str(call.arguments["said"])
        return text(json.dumps({"said": said, "hex": said.encode().hex()}, ensure_ascii=False))


@mode
def u2028(peer: Peer) -> None:
    """Text with characters that some languages, but not JSON, take for the end of a line."""

    @acts(peer)
    def act(_: Call) -> Json:
        return text("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei")


@mode
def pretty(peer: Peer) -> None:
    """A server whose author found its messages easier to read when indented."""

    @acts(peer)
    def act(call: Call) -> None:
        peer.raw(json.dumps(peer.answer_to(call, text("spread out")), indent=2).encode() + b"\n")


@mode
def bad_utf8_line(peer: Peer) -> None:
    """A log line in another encoding, in the midst of a call."""

    @acts(peer)
    def act(_: Call) -> Json:
        peer.raw(b"caf\xe9 \xff\xfe opened\n")
        return text("done")


@mode
def bad_utf8_reply(peer: Peer) -> None:
    """A tool that passes on the bytes of a file that was not UTF-8."""

    @acts(peer)
    def act(call: Call) -> None:
        peer.raw(encode(peer.answer_to(call, text("caf?!"))).replace(b"?", b"\xe9") + b"\n")


@mode
def lone_surrogate(peer: Peer) -> None:
    """Half of an emoji, escaped: what JavaScript makes of text that was cut by length."""

    @acts(peer)
    def act(call: Call) -> None:
        peer.raw(json.dumps(peer.answer_to(call, text("half \ud83d"))).encode() + b"\n")


@mode
def batch(peer: Peer) -> None:
    """A server of 2025-03-26 that writes several messages as one JSON array."""
    other = encode({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
    peer.write = lambda message: peer.raw(b"[" + other + b"," + encode(message) + b"]\n")


@mode
def oversized(peer: Peer) -> None:
    """A tool that answers with more than anybody wants to hold."""

    @acts(peer)
    def act(call: Call) -> Json:
        return text("x" * int(call.arguments["size"]))


@mode
def stderr_flood(peer: Peer) -> None:
    """A tool that logs far more to stderr than a pipe holds, then answers; or dies after its last words."""

    @acts(peer)
    def act(_: Call) -> Json:
        os.write(2, FLOOD)
        return text("answered")

    def die(_: Call) -> None:
        os.write(2, FLOOD + b"the last words\n")
        os._exit(7)

    peer.tool("die", die)
