"""Arguments made fit for a tool without changing what they say: needless nulls dropped, JSON text decoded."""

from __future__ import annotations

from typing import Any

from luthier.taint import Labelled
from luthier.tools.tool import JsonObject


def prepare(schema: JsonObject, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the tool wants them; arguments that fit the schema already come back unchanged."""
    raise NotImplementedError


def prepare_labelled(schema: JsonObject, arguments: Labelled[dict[str, Any]]) -> Labelled[dict[str, Any]]:
    """`prepare` on the value; every label stays where it was, that of a dropped null included."""
    raise NotImplementedError
