"""Content blocks of the protocol, for tools that give more than a text: `Reply(blocks=[text(…), …])`."""

from __future__ import annotations

import base64
from typing import Any

Block = dict[str, Any]


def text(said: str) -> Block:
    """A text."""
    return {"type": "text", "text": said}


def image(data: bytes, mime_type: str) -> Block:
    """A picture."""
    return {"type": "image", "data": _encoded(data), "mimeType": mime_type}


def audio(data: bytes, mime_type: str) -> Block:
    """A sound."""
    return {"type": "audio", "data": _encoded(data), "mimeType": mime_type}


def resource(uri: str, content: str | bytes, mime_type: str) -> Block:
    """A document with its content."""
    found = {"text": content} if isinstance(content, str) else {"blob": _encoded(content)}
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, **found}}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
