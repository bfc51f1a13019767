"""Whether a reply keeps the promise of its tool's output schema; a broken promise is noted, the reply is kept."""

from __future__ import annotations

from luthier.tools.result import Reply
from luthier.tools.schema import Schema
from luthier.tools.tool import Tool


def checked(reply: Reply, tool: Tool, schema: Schema | None) -> Reply:
    """The same reply, with a note where its structured value is missing or does not fit. None: nothing promised."""
    raise NotImplementedError
