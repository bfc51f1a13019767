"""Reads what a host asks a person for: the `inputs` of VS Code's files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.spec.hosts.variables import Question

if TYPE_CHECKING:
    from luthier.spec.document import Document
    from luthier.spec.origin import KeyPath


def read_questions(document: Document, path: KeyPath | None) -> dict[str, Question]:
    """The questions by their ids. One that cannot be read is told where it is used."""
    if path is None or not document.holds(path):
        return {}
    listed = document.get(path)
    inputs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {one["id"]: _question(one) for one in inputs if isinstance(one.get("id"), str)}


def _question(written: dict[str, Any]) -> Question:
    type_ = written.get("type", "promptString")
    fault = "" if type_ in ("promptString", "pickString") else "the host would run one of its own commands"
    default = written.get("default")
    return Question(
        description=str(written.get("description") or ""),
        default=default if isinstance(default, str) else None,
        secret=written.get("password") is True,
        fault=fault,
    )
