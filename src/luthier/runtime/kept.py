"""What is known of the tools of a project's servers without asking them: their pins in the store."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from luthier.errors import LuthierError
from luthier.govern.pin_book import PINS
from luthier.runtime.sources import state_in
from luthier.store import database_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.spec import Project
    from luthier.tools.tool import JsonObject


def kept_tools(project: Project, environ: Mapping[str, str]) -> dict[str, dict[str, JsonObject]]:
    """The input schemas of the tools that are pinned, by server. Nothing is made or brought up to date.

    A store that cannot be read, is older or not a file tells nothing here: `luthier doctor` says why.
    """
    try:
        database = database_of(project, environ)
        if database is None or database.address.file is None:
            return {}
        with closing(database):
            stored = state_in(database, project).list(PINS) if database.standing() == "current" else {}
    except LuthierError:
        return {}
    return {server: schemas_of(pins) for server, pins in stored.items()}


def schemas_of(pins: Any) -> dict[str, JsonObject]:
    """The schemas in the pins of one server, as far as they can be read."""
    found = {}
    for name, pin in pins.items() if isinstance(pins, dict) else ():
        definition = pin.get("definition") if isinstance(pin, dict) else None
        schema = definition.get("inputSchema") if isinstance(definition, dict) else None
        if isinstance(schema, dict):
            found[name] = schema
    return found
