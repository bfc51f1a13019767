"""Labels on values: where a value came from and how far it is trusted."""

from luthier.taint.entries import TaintEntry, entries_of
from luthier.taint.label import (
    SECRET,
    TRUSTED,
    UNTRUSTED,
    Confidentiality,
    Integrity,
    Label,
    Source,
    join,
)
from luthier.taint.labelled import Labelled, escape_pointer, gathered, label_of, merge

__all__ = [
    "SECRET",
    "TRUSTED",
    "UNTRUSTED",
    "Confidentiality",
    "Integrity",
    "Label",
    "Labelled",
    "Source",
    "TaintEntry",
    "entries_of",
    "escape_pointer",
    "gathered",
    "join",
    "label_of",
    "merge",
]
