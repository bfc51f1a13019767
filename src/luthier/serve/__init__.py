"""What a project offers to clients outside: its ensembles and chosen tools, by the protocol and by REST."""

from luthier.serve.callers import Callers, new_token, token_hash
from luthier.serve.listening import Listening
from luthier.serve.service import Service

__all__ = ["Callers", "Listening", "Service", "new_token", "token_hash"]
