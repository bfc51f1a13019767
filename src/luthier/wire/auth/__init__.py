"""Credentials for the requests to servers: bearer tokens, signatures, and the two ways of OAuth."""

from luthier.wire.auth.factory import Means, make_authorizer
from luthier.wire.auth.login import log_in
from luthier.wire.auth.token_file import FileTokens
from luthier.wire.auth.tokens import Grant, MemoryTokens, Tokens, TokenStore

__all__ = [
    "FileTokens",
    "Grant",
    "Means",
    "MemoryTokens",
    "TokenStore",
    "Tokens",
    "log_in",
    "make_authorizer",
]
