"""References to secrets, and the values that they stand for."""

from luthier.secrets.dotenv import parse_env
from luthier.secrets.keys import find_keys
from luthier.secrets.references import STORED, Reference, expand, find, unresolved
from luthier.secrets.secret import Secret
from luthier.secrets.sources import Sources
from luthier.secrets.vault import Vault

__all__ = [
    "STORED",
    "Reference",
    "Secret",
    "Sources",
    "Vault",
    "expand",
    "find",
    "find_keys",
    "parse_env",
    "unresolved",
]
