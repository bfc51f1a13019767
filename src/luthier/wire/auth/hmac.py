"""Signs each request with the secret that the entry shares with its server."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.secrets import Secret

TIMESTAMP, SIGNATURE = "X-Conductor-Timestamp", "X-Conductor-Signature"


def signature(secret: Secret, body: bytes, *, at: float) -> dict[str, str]:
    """The two headers for a body (empty for a GET) sent at that Unix time, in seconds."""
    stamp = str(int(at))
    key = secret.reveal().encode("utf-8", "surrogatepass")
    digest = hmac.new(key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {TIMESTAMP: stamp, SIGNATURE: f"sha256={digest}"}
