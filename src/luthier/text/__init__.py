"""Text from elsewhere: made safe to show, definitions cleaned for models, names that are like others."""

from luthier.text.cleaner import Cleaned, Finding, clean, is_clean
from luthier.text.escaping import escape, one_line
from luthier.text.names import lookalikes, near
from luthier.text.suspicions import suspicions

__all__ = [
    "Cleaned",
    "Finding",
    "clean",
    "escape",
    "is_clean",
    "lookalikes",
    "near",
    "one_line",
    "suspicions",
]
