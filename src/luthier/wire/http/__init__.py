"""Servers behind a URL: streamable HTTP of both eras, the older HTTP with SSE, and the REST dialect."""

from luthier.wire.http.authorizer import Authorizer, OutgoingHttp
from luthier.wire.http.client import HttpClient
from luthier.wire.http.ladder import Kind, Remembered, Remote, http_transport, open_remote
from luthier.wire.http.target import HttpTarget, TlsFiles

__all__ = [
    "Authorizer",
    "HttpClient",
    "HttpTarget",
    "Kind",
    "OutgoingHttp",
    "Remembered",
    "Remote",
    "TlsFiles",
    "http_transport",
    "open_remote",
]
