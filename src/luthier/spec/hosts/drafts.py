"""A server of a host's file on its way to an entry: what luthier.yaml would say, and where it was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.spec.hosts.variables import VariableFault, questions_in, rewritten, variable_of
from luthier.spec.reader import Found, Sink
from luthier.spec.servers import read_servers
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from luthier.spec.document import Document
    from luthier.spec.hosts.variables import Surroundings
    from luthier.spec.origin import KeyPath
    from luthier.spec.project import ServerEntry


class Draft:
    """Gathers what one server says, its faults, and notes on what could not be taken over."""

    def __init__(self, document: Document, path: KeyPath, around: Surroundings) -> None:
        self.path = path
        self.around = around
        self.faults = Sink(document)
        self.notes = Sink(document)
        self.says: dict[str, Any] = {}
        self._places: dict[KeyPath, KeyPath] = {}

    def put(self, key: str, value: Any, at: KeyPath) -> None:
        """A value that stands there; None and what is empty are not put."""
        if value is not None and value not in ((), [], {}, ""):
            self.says[key] = list(value) if isinstance(value, tuple) else value
            self._places[(key,)] = at

    def switch_off(self) -> None:
        self.put("disabled", True, self.path)  # noqa: FBT003  (a value like any other)

    def text(self, value: str | None, at: KeyPath) -> str | None:
        """A text with its variables as references; a fault, and the text as it is, where that cannot be."""
        if value is None:
            return None
        for name in questions_in(value):
            question = self.around.questions.get(name)
            about = f": {question.description}" if question and question.description else ""
            self.note(
                f"the host would ask for {quoted(name)}{about}", at, suggestion=f"set {variable_of(name)}"
            )
        try:
            return rewritten(value, self.around)
        except VariableFault as fault:
            self.faults.add(fault.message, at, suggestion=fault.suggestion)
            return value

    def note(self, message: str, path: KeyPath, *, suggestion: str = "") -> None:
        self.notes.add(message, path, key=True, suggestion=suggestion, warning=True)

    def entry(self, id_: str) -> ServerEntry | None:
        """The entry as loading reads it, not approved, its faults where the host's file has them.

        None where there are faults already: more of them would only follow from those.
        """
        if self.faults.faults:
            return None
        document = self.faults.document
        says = {**self.says, "approved": False}
        places = {(id_,): self.path} | {(id_, *path): at for path, at in self._places.items()}
        sink = Sink(document.rearranged({id_: says}, places))
        entries = read_servers(sink, Found((), {id_: says}))
        self.faults.faults += sink.faults
        return (entries or {}).get(id_)
