"""JSON Schemas of the files that people write, for editors: what can be known of one file alone.

They are made of the same tables as the readers (operations, choices, bounds, spellings); the tests read every
file of the repository both ways. References between steps and files are for `luthier check` to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec.schema.ensemble import ENSEMBLE
from luthier.spec.schema.project import PROJECT

if TYPE_CHECKING:
    from luthier.spec.schema.terms import Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS: dict[str, Schema] = {
    "ensemble": {"$schema": DIALECT, **ENSEMBLE},
    "project": {"$schema": DIALECT, **PROJECT},
}
"""By the kind of file."""
