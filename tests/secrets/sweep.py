"""Where secrets could have got to: everything that was written, by sink, and a search in six encodings.

The search is written apart from the redactor's, so that both cannot be blind to the same thing.
"""

from __future__ import annotations

import base64
import re
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

KINDS = (
    "env", "env file", "inherited", "vault", "file", "keyring", "literal token", "literal env", "signature",
    "client secret", "access token", "refresh token", "call header", "audit key", "vault key",
    "argument", "proxy", "parameter", "client token",
)  # fmt: skip

CONTROL = "c0ntr0l-words-that-are-no-secret"
"""What servers say beside the secrets: where it is found, the secrets would have been."""


def canaries() -> dict[str, str]:
    """A secret of each kind, each like no other."""
    return {kind: f"Kn4ry+{secrets.token_urlsafe(24)}/q" for kind in KINDS}


def encodings(text: str) -> dict[str, str]:
    """By name, what of a text is sure to be found in an encoding of something that holds it."""
    data = text.encode()
    found = {"raw": text, "url": quote(text, safe=""), "form": quote_plus(text), "hex": data.hex()}
    found["json"] = "".join(f"\\u{ord(one):04x}" for one in text)
    found["cut short"], found["its end"] = text[:14], text[-14:]
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + data + b"\0\0\0").decode()
        found[f"base64 at {offset}"] = whole[4 if offset else 0 : 4 * ((offset + len(data)) // 3)]
    return found


class Sweep:
    """All that was written, by sink."""

    def __init__(self) -> None:
        self.seen: dict[str, bytes] = {}

    def take(self, sink: str, *written: object) -> None:
        for one in written:
            data = one if isinstance(one, bytes) else str(one).encode("utf-8", "replace")
            self.seen[sink] = self.seen.get(sink, b"") + b"\n\0" + data

    def take_files(self, folder: Path, *, but: Iterable[Path] = ()) -> None:
        """Every file below, raw, except those in which users themselves put secrets."""
        homes = {path.resolve() for path in but}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.resolve() not in homes:
                self.take(_sink_of(path), path.name, path.read_bytes())

    def hits(self, texts: dict[str, str]) -> list[tuple[str, str, str]]:
        """Sink, kind and encoding of everything found."""
        return [
            (sink, kind, name)
            for sink, data in self.seen.items()
            for kind, text in texts.items()
            for name in _found(data, text)
        ]

    @property
    def size(self) -> int:
        return sum(map(len, self.seen.values()))


def _found(data: bytes, text: str) -> Iterator[str]:
    joined = re.sub(rb"\s+|\\[nrt]|\0", b"", data)
    lower = joined.lower()
    for name, spelling in encodings(text).items():
        wanted = spelling.encode()
        if wanted in data or wanted in joined or (name in ("hex", "url", "json") and wanted.lower() in lower):
            yield name


def _sink_of(path: Path) -> str:
    parts = path.parts
    for folder in ("audit", "checkpoints"):
        if folder in parts:
            return folder
    if ".db" in path.name:
        return "database"  # with its log, where the newest of it stands
    return path.name if path.name == "tokens.json" else "other files"
