"""Reads `flow:`, the written order: places of steps, and control steps in every spelling of the language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.spec.control import FlowItem, FlowStep
from luthier.spec.control_steps import KINDS, READERS
from luthier.spec.draft import Place, Uses
from luthier.spec.names import name_fault
from luthier.spec.reader import Found, Reader
from luthier.spec.steps import UNUSED, read_common
from luthier.spec.words import listed, meant, quoted

if TYPE_CHECKING:
    from luthier.spec.draft import Draft
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

LISTED = ("parallel", "try")  # may be written with the list of their steps under their own name


class FlowReader:
    """Reads items one by one; `places` holds each step and each control step by its name in expressions."""

    def __init__(self, sink: Sink, drafts: list[Draft]) -> None:
        self.sink = sink
        self._drafts = {draft.name: draft for draft in drafts}
        self.places: dict[str, Place] = {}
        self.fields: list[tuple[KeyPath, str]] = []  # of the state, that places use and set
        self.evaluators: list[tuple[KeyPath, str, str]] = []  # whom a place says that it is judged by

    def items(self, found: Found | None, around: str = "") -> tuple[FlowItem, ...]:
        """The items of a list. A control step without an id is called after what is around, and its index."""
        if found is None:
            return ()
        path, value = found
        if not isinstance(value, list):
            self.sink.wrong("a list of steps", path, value)
            return ()
        if not value:
            self.sink.add(f"{quoted(str(path[-1]))} is empty", path)
        items = [self.item(Found((*path, index), item), around, index) for index, item in enumerate(value)]
        return tuple(item for item in items if item is not None)

    def item(self, found: Found, around: str, index: int | str) -> FlowItem | None:
        """One item: a step's name, a place with `agent`, or a control step."""
        path, value = found
        if isinstance(value, str):
            return self._step(path, value, Reader(self.sink, path, {}), named=False)
        if not isinstance(value, dict):
            self.sink.add("this must be a step's name, `agent: NAME` or a control step", path)
            return None
        reader = Reader(self.sink, path, value)
        spelled = next((key for key in KINDS if key in value), None)
        kind = KINDS.get(spelled or str(value.get("type")))
        if kind is not None:
            return self._control(kind, spelled, reader, f"{around or kind}_{index}")
        if value.get("type") not in (None, "agent", "step"):
            message = f"there is no control step {quoted(str(value['type']))}"
            has = f"there are {listed(READERS)}"
            self.sink.add(
                message, (*path, "type"), suggestion=meant(str(value["type"]), READERS, otherwise=has)
            )
            return None
        name = reader.text("agent", required=True)
        return self._step((*path, "agent"), name, reader, named=True) if name is not None else None

    def _control(self, kind: str, spelled: str | None, reader: Reader, usual: str) -> FlowItem | None:
        """The fields stand beside `type`, in the mapping under the kind's own name, or beside its list."""
        steps = None
        if spelled is None:
            reader.take("type")
        else:
            found = reader.take(spelled, required=True)
            if found is None:
                return None
            if kind in LISTED and isinstance(found.value, list):
                steps = found
            else:
                reader.done()
                inner = Reader.of(self.sink, found.path, found.value, quoted(spelled))
                if inner is None:
                    return None
                reader = inner
        written = reader.text("id", "name")
        name = written or usual
        place = Place(reader.places["id"] if written else reader.path, None, Uses({}, []))
        if written is not None and (fault := name_fault(written)):
            self.sink.add(f"a step cannot be named {quoted(written)}", place.path, suggestion=fault)
        self._claim(name, place)
        return READERS[kind](self, reader, name, place.uses, steps)

    def _step(self, path: KeyPath, step: str, reader: Reader, *, named: bool) -> FlowItem:
        uses = Uses({}, [])
        own = reader.text("id", "name") if named else None
        fields = read_common(reader, uses)
        reader.refuse(
            UNUSED, lambda key: f"this version does not use {quoted(key)} of steps yet", warning=True
        )
        self.fields += uses.fields
        self.evaluators += [(where, step, evaluator) for where, evaluator in uses.evaluators]
        if named:
            reader.take("type")
            reader.done()
        draft = self._drafts.get(step)
        if draft is None:
            message = f"there is no step {quoted(step)}"
            self.sink.add(message, path, suggestion=meant(step, self._drafts))
        else:
            uses = Uses(
                {**draft.uses.expressions, **uses.expressions}, uses.depends_on or draft.uses.depends_on
            )
        name = own or step
        if own is not None and (fault := name_fault(own)):
            self.sink.add(f"a step cannot be named {quoted(own)}", path, suggestion=fault)
        self._claim(name, Place(path, step, uses))
        return FlowStep(step=step, name=name, **fields)

    def _claim(self, name: str, place: Place) -> None:
        if name in self.places:
            message = f"{quoted(name)} stands in the flow a second time"
            self.sink.add(message, place.path, suggestion="give one of them an `id` of its own")
        self.places.setdefault(name, place)
