"""Frames of just under the default limit of a message, made to cost their reader as much as can be."""

from __future__ import annotations

_SIZE = 9_900_000
_ANSWER = b'{"jsonrpc":"2.0","id":1,"result":'


def _filled(piece: bytes, before: bytes = _ANSWER, after: bytes = b"") -> bytes:
    return before + piece * ((_SIZE - len(before) - len(after)) // len(piece)) + after


FRAMES = {
    "quotes": _filled(b'"', b'{"a":'),
    "quotes in an answer": _filled(b'"'),
    "backslashes in a string": _filled(b"\\\\", _ANSWER + b'"\xff'),
    "escaped quotes": _filled(b'\\"', _ANSWER + b'"'),
    "messages without a newline": _filled(_ANSWER + b"1}", b""),
    "beginnings of messages": _filled(b'{"jsonrpc"', b""),
    "a batch": _filled(_ANSWER + b"1},", b"[", b"1]"),
    "an array of numbers": _filled(b"1,", b"[", b"1]"),
    "lone surrogates": _filled(b"\\ud800", _ANSWER + b'"', b'"}'),
    "pairs of surrogates": _filled(b"\\ud83d\\ude00", _ANSWER + b'"\\ud800', b'"}'),
    "bytes that are not UTF-8": _filled(b"\xff", _ANSWER + b'"', b'"}'),
    "NaN": _filled(b"NaN,", _ANSWER + b"[", b"1]}"),
    "NaN in content": _filled(b"NaN,", _ANSWER + b'{"content":[', b"1]}}"),
    "numbers beyond a double": _filled(b"1e999,", _ANSWER + b"[", b"1]}"),
    "opening brackets": _filled(b"[{"),
    "opened objects": _filled(b'{"a":', b""),
    "lists in an error": _filled(b"[],", b'{"jsonrpc":"2.0","id":1,"error":[', b"1]}"),
    "lists in an id": _filled(b"[],", b'{"jsonrpc":"2.0","result":1,"id":[', b"1]}"),
    "ids": _filled(b'"id":1,', b"{"),
    "text that is no JSON": _filled(b"x", b""),
    "text before quotes": _filled(b'"', b'[INFO] {"jsonrpc":'),
}
"""By what they are full of. Where they are an answer, it is to the request 1."""

RESULTS = {
    "lists as content": _filled(b"[],", b'{"content":[', b"1]}"),
    "numbers as content": _filled(b"1,", b'{"content":[', b"1]}"),
    "objects as content": _filled(b"{},", b'{"content":[', b"1]}"),
    "lists in structure": _filled(b"[],", b'{"content":[],"structuredContent":[', b"1]}"),
    "an array of lists": _filled(b"[],", b"[", b"1]"),
    "an array of texts": _filled(b'"",', b"[", b"1]"),
}
"""Strict JSON, and as results of `tools/call` too much."""
