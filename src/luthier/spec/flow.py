"""Reads `flow:`, the written order: steps and parallel groups, in every spelling of the language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.spec.draft import Place, Uses
from luthier.spec.ensemble import FlowItem, FlowStep, ParallelFlow, WaitFor
from luthier.spec.names import name_fault
from luthier.spec.reader import Reader
from luthier.spec.steps import UNSUPPORTED, UNUSED, read_common
from luthier.spec.words import meant, quoted

if TYPE_CHECKING:
    from luthier.spec.draft import Draft
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

CONTROL = ("branch", "foreach", "try", "switch", "while", "map-reduce", "mapReduce", "map_reduce")
_ONLY = "this version has sequence and parallel"
_KINDS = ("parallel", *CONTROL)
_WAITS = ("all", "any", "first")


class FlowReader:
    """Reads items one by one; `places` holds each step's place and each group by its name in expressions."""

    def __init__(self, sink: Sink, drafts: list[Draft]) -> None:
        self._sink = sink
        self._drafts = {draft.name: draft for draft in drafts}
        self.places: dict[str, Place] = {}

    def items(self, path: KeyPath, value: Any, group: str = "parallel") -> list[FlowItem]:
        """The items of a list. A group without an id is called by `group` and its index."""
        if not isinstance(value, list):
            self._sink.wrong("a list of steps", path, value)
            return []
        if not value:
            self._sink.add(f"{quoted(str(path[-1]))} is empty", path)
        items = [self._item((*path, index), item, f"{group}_{index}") for index, item in enumerate(value)]
        return [item for item in items if item is not None]

    def _item(self, path: KeyPath, value: Any, group: str) -> FlowItem | None:
        if isinstance(value, str):
            return self._step(path, value, Reader(self._sink, path, {}), named=False)
        if not isinstance(value, dict):
            self._sink.add("this must be a step's name, `agent: NAME` or `parallel: […]`", path)
            return None
        reader = Reader(self._sink, path, value)
        control = next((key for key in CONTROL if key in value), None) or value.get("type")
        if "parallel" in value:
            return self._nested(reader, group)
        if control == "parallel":
            reader.take("type")
            return self._group(reader, reader.take("steps", required=True), group)
        if control in CONTROL:
            at = (*path, control if control in value else "type")
            self._sink.add(
                f"the control step {quoted(control)} is not in this version yet", at, suggestion=_ONLY
            )
            return None
        if control not in (None, "agent", "step"):
            message = f"there is no control step {quoted(str(control))}"
            self._sink.add(message, (*path, "type"), suggestion=meant(str(control), _KINDS, otherwise=_ONLY))
            return None
        name = reader.text("agent", required=True)
        return self._step((*path, "agent"), name, reader, named=True) if name is not None else None

    def _nested(self, reader: Reader, group: str) -> FlowItem | None:
        """`parallel:` with a list, or with a mapping of its own."""
        found = reader.take("parallel", required=True)
        if found is None:
            return None
        if isinstance(found.value, list):
            return self._group(reader, found, group)
        reader.done()
        inner = Reader.of(self._sink, found.path, found.value, "`parallel`")
        return self._group(inner, inner.take("steps", required=True), group) if inner else None

    def _group(self, reader: Reader, steps: Any, group: str) -> FlowItem | None:
        wait_for = cast("WaitFor", reader.choice(_WAITS, "wait_for") or "all")
        written = reader.text("id", "name")
        reader.done()
        name = written or group
        self._claim(
            name, Place((*reader.path, "id") if "id" in reader.data else reader.path, None, Uses({}, []))
        )
        members = self.items(steps.path, steps.value, name) if steps else []
        return ParallelFlow(name=name, steps=tuple(members), wait_for=wait_for)

    def _step(self, path: KeyPath, step: str, reader: Reader, *, named: bool) -> FlowItem:
        uses = Uses({}, [])
        own = reader.text("id", "name") if named else None
        fields = read_common(reader, uses)
        reader.refuse(UNSUPPORTED, lambda key: f"this version has no {quoted(key)} of steps")
        reader.refuse(
            UNUSED, lambda key: f"this version does not use {quoted(key)} of steps yet", warning=True
        )
        if named:
            reader.take("type")
            reader.done()
        draft = self._drafts.get(step)
        if draft is None:
            message = f"there is no step {quoted(step)}"
            self._sink.add(message, path, suggestion=meant(step, self._drafts))
        else:
            uses = Uses(
                {**draft.uses.expressions, **uses.expressions}, uses.depends_on or draft.uses.depends_on
            )
        name = own or step
        if own is not None and (fault := name_fault(own)):
            self._sink.add(f"a step cannot be named {quoted(own)}", path, suggestion=fault)
        self._claim(name, Place(path, step, uses))
        return FlowStep(step=step, name=name, **fields)

    def _claim(self, name: str, place: Place) -> None:
        if name in self.places:
            message = f"{quoted(name)} stands in the flow a second time"
            self._sink.add(message, place.path, suggestion="give one of them an `id` of its own")
        self.places.setdefault(name, place)
