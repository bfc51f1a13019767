"""References to secrets, and the values that they stand for."""

from luthier.secrets.dotenv import parse_env
from luthier.secrets.references import Reference, expand, find, unresolved
from luthier.secrets.secret import Secret

__all__ = ["Reference", "Secret", "expand", "find", "parse_env", "unresolved"]
