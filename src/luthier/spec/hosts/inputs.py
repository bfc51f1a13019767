"""The inputs of a `server.json`: values that stand there, defaults, and what a person is to set."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from luthier.spec.reader import Reader
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec.hosts.drafts import Draft
    from luthier.spec.origin import KeyPath

_HOLE = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
_ABOUT = ("description", "format", "is_secret", "choices", "placeholder", "is_repeated", "type")


class Inputs:
    """Fills in what one offer asks for. What nobody has set becomes a reference to a variable."""

    def __init__(self, draft: Draft, name: str) -> None:
        self._draft = draft
        self._prefix = name

    def named(self, reader: Reader, key: str) -> Iterator[Reader]:
        """The inputs of a list, each as a reader."""
        found = reader.take(key)
        if found is None:
            return
        if not isinstance(found.value, list):
            reader.sink.wrong("a list", *found)
            return
        for index, item in enumerate(found.value):
            inner = Reader.of(reader.sink, (*found.path, index), item, "an input")
            if inner is not None:
                yield inner

    def value(self, one: Reader, name: str, variable: str = "", *, needed: bool = False) -> str | None:
        """What stands there, or the default; a reference for what must be set; None for what may be left."""
        written = one.text("value")
        default = one.text("default")
        needed = one.flag("is_required") or needed
        described = one.text("description") or ""
        for key in _ABOUT:
            one.raw(key)
        variables = one.inner("variables")
        if written is not None:
            return self.filled(written, variables, one.path)
        if default is not None:
            return _plain(default)
        if needed:
            return self._reference(variable or self._variable(name), described, one.path)
        about = f": {described}" if described else ""
        self._draft.note(f"{quoted(name)} is left out, as it may be{about}", one.path)
        return None

    def filled(self, text: str, variables: Reader | None, at: KeyPath) -> str:
        """The text with the holes filled that `variables` names; others are no holes."""
        parts: list[str] = []
        end = 0
        for found in _HOLE.finditer(text):
            inner = variables.inner(found[1]) if variables is not None else None
            if inner is None:
                continue
            parts.append(_plain(text[end : found.start()]))
            end = found.end()
            parts.append(self.value(inner, found[1], needed=True) or "")
        parts.append(_plain(text[end:]))
        if any(one.endswith("$") and then.startswith("${") for one, then in pairwise(parts)):
            self._draft.faults.add("a `$` stands before a variable: there is no way to write this here", at)
        return "".join(parts)

    def _variable(self, name: str) -> str:
        text = re.sub(r"[^A-Za-z0-9]+", "_", f"{self._prefix}_{name}").strip("_").upper()
        return text if text[:1].isalpha() else f"INPUT_{text}"

    def _reference(self, variable: str, described: str, at: KeyPath) -> str:
        about = f": {described}" if described else ""
        self._draft.note(f"{variable} is to be set{about}", at)
        return f"${{{variable}}}"


def _plain(text: str) -> str:
    """The text as one of ours that holds no reference."""
    return text.replace("${", "$${")
