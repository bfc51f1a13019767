"""References to secrets, and the values that they stand for."""

from luthier.secrets.dotenv import parse_env
from luthier.secrets.references import Reference, expand, find, unresolved

__all__ = ["Reference", "expand", "find", "parse_env", "unresolved"]
