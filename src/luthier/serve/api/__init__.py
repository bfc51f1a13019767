"""The HTTP API: runs and what waits for a person, for programs that do not speak the protocol."""

from luthier.serve.api.asking import nothing_here
from luthier.serve.api.routes import api_routes

__all__ = ["api_routes", "nothing_here"]
