"""The names under which tools go to a model: `server__tool`, and the table that leads back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.uri import ToolUri

if TYPE_CHECKING:
    from collections.abc import Iterable


def model_name(uri: ToolUri) -> str:
    """At most 64 characters of `[A-Za-z0-9_-]`; the same for the same tool, always."""
    raise NotImplementedError


class NameTable:
    """The names of one set of tools. A name is looked up here, never taken apart."""

    def __init__(self, uris: Iterable[ToolUri]) -> None:
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of their addresses."""
        raise NotImplementedError

    def name_of(self, uri: ToolUri) -> str:
        """The name of one tool of the set. Raises NotFoundError."""
        raise NotImplementedError

    def uri_of(self, name: str) -> ToolUri:
        """The tool behind a name. Raises NotFoundError with the nearest names."""
        raise NotImplementedError
