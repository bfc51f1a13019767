"""From a document to an Ensemble: everything is read, every fault gathered, before anything is said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier.errors import SpecError
from luthier.spec.control import RunScoring
from luthier.spec.declarations import Declarations, read_declarations
from luthier.spec.ensemble import Ensemble
from luthier.spec.flow import FlowReader
from luthier.spec.load import load
from luthier.spec.members import warn_of_unread
from luthier.spec.order import Names, check_free
from luthier.spec.origin import Origin
from luthier.spec.outputs import Outputs, read_outputs
from luthier.spec.python import document_of
from luthier.spec.reader import Reader, Sink
from luthier.spec.scoring import JUDGED, check_evaluators, read_run_scoring
from luthier.spec.state import check_fields, read_run_state
from luthier.spec.steps import read_cache, read_steps
from luthier.spec.trigger import read_triggers
from luthier.spec.unreachable import warn_of_flow, warn_of_steps
from luthier.spec.words import quoted
from luthier.spec.written import check_written

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from luthier.errors import Fault
    from luthier.spec.control import FlowItem
    from luthier.spec.document import Document
    from luthier.spec.draft import Draft
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath

UNSUPPORTED = ("memory",)
UNUSED = (
    "api_executable",
    "notifications",
    "logging",
    "metrics",
    "tracing",
)
_HINTS = {"tools": "did you mean agents?", "env": "names for env go under `expose_env` in luthier.yaml"}


def load_ensemble(path: Path | str, *, file: str | None = None) -> Ensemble:
    """Read an ensemble's file; `file` is what faults call it. Raises SpecError with every fault."""
    return compose(load(Path(path), file=str(path) if file is None else file))


def read_ensemble(source: Mapping[str, Any] | str, *, file: str = "") -> Ensemble:
    """Read an ensemble from a mapping or from YAML text. Raises SpecError with every fault."""
    return compose(load(source, file=file) if isinstance(source, str) else document_of(source, file=file))


def compose(document: Document) -> Ensemble:
    """The ensemble of a document. Raises SpecError with every fault, warnings among them."""
    ensemble, faults = examine(document)
    if ensemble is None or any(not fault.warning for fault in faults):
        raise SpecError(faults)
    return ensemble


def examine(document: Document) -> tuple[Ensemble | None, list[Fault]]:
    """The ensemble as far as it could be read, and all faults and warnings in the order of the file.

    Where there are errors it cannot run, but it can be checked against its project: all faults come together.
    """
    sink = Sink(document)
    reader = Reader.of(sink, (), document.data, "an ensemble")
    fields = _read(reader) if reader else None
    faults = in_order(sink.faults)
    return (Ensemble(**fields, warnings=tuple(faults)) if fields else None), faults


def in_order(faults: list[Fault]) -> list[Fault]:
    """By place, each once."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line, fault.column))


def _read(reader: Reader) -> dict[str, Any]:
    sink, document = reader.sink, reader.sink.document
    name = _name(reader)
    declared = read_declarations(sink, reader.take("inputs", "input"))
    steps = reader.take("agents", "steps", required=True)
    drafts = read_steps(sink, *steps) if steps else []
    flow = _read_flow(reader, drafts)
    outputs = read_outputs(sink, reader.take("outputs", "output"))
    kept: dict[str, Placed] = {}
    cache = read_cache(reader, kept)
    scoring = read_run_scoring(reader, kept)
    state, initial = read_run_state(reader)
    if initial is not None:
        kept["initial"] = initial
    fields = [field for draft in drafts for field in draft.uses.fields]
    check_fields(sink, state, fields + (flow.fields if flow else []))
    shared = state.types if state else ()
    reads_env = _check_names(sink, drafts, flow, declared, outputs, kept, shared)
    description = reader.text("description") or ""
    triggers = read_triggers(reader, name or "")
    reader.refuse(UNSUPPORTED, lambda key: f"this version has no {quoted(key)} of ensembles")
    reader.refuse(
        UNUSED, lambda key: f"this version does not use {quoted(key)} of ensembles yet", warning=True
    )
    reader.take("version")
    reader.done(_HINTS)
    return {
        "name": name or "",
        "description": description,
        "file": document.file,
        "inputs": declared.inputs,
        "steps": tuple(draft.step for draft in drafts if draft.step is not None),
        "flow": flow.items if flow else None,
        "outputs": outputs.mapping.compiled if outputs.mapping else None,
        "blocks": tuple(outputs.blocks),
        "cache": cache,
        "state": state,
        "scoring": scoring or RunScoring(),
        "triggers": triggers,
        "reads_env": reads_env,
        "origin": Origin(document, (), reader.places),
    }


def _name(reader: Reader) -> str | None:
    """As written, else the file's stem."""
    found = reader.take("ensemble", "name")
    stem = Path(reader.sink.document.file).stem
    if found is None and stem:
        return stem
    name = reader.text("ensemble", "name", required=True)
    if (
        name is not None
        and found is not None
        and (not name.isprintable() or "/" in name or name != name.strip())
    ):
        reader.sink.add("an ensemble's name is one line without slashes or blanks around it", found.path)
    return name


class _Flow:
    """What `flow:` says: its items, and the places of steps and groups by name."""

    def __init__(self, items: tuple[FlowItem, ...], reader: FlowReader) -> None:
        self.items = items
        self.places = reader.places
        self.fields = reader.fields
        self.evaluators = reader.evaluators


def _read_flow(reader: Reader, drafts: list[Draft]) -> _Flow | None:
    found = reader.take("flow")
    if found is None:
        return None
    flow = FlowReader(reader.sink, drafts)
    items = flow.items(found)
    used = {place.step for place in flow.places.values()}
    used |= {evaluator for _, _, evaluator in (*flow.evaluators, *_judged_by(drafts))}
    for draft in drafts:
        if items and draft.name and draft.name not in used:
            message = f"step {quoted(draft.name)} is not in the flow: it never runs"
            reader.sink.add(message, (*draft.path, "name"), warning=True)
    return _Flow(items, flow)


def _judged_by(drafts: list[Draft]) -> list[tuple[KeyPath, str, str]]:
    """Where, by which step, and which step is named as an evaluator."""
    return [(path, draft.name, name) for draft in drafts for path, name in draft.uses.evaluators]


def _check_names(
    sink: Sink,
    drafts: list[Draft],
    flow: _Flow | None,
    declared: Declarations,
    outputs: Outputs,
    kept: dict[str, Placed],
    fields: Collection[str],
) -> dict[str, Fault]:
    judges = check_evaluators(sink, drafts, [*_judged_by(drafts), *(flow.evaluators if flow else ())])
    for draft in drafts:
        if draft.name in judges:
            list(Names(sink, (), JUDGED, {}).named(draft.uses, draft.name))
    defined = [draft.name for draft in drafts if draft.name]
    named = list(flow.places) if flow else [name for name in defined if name not in judges]
    places = flow.places.items() if flow else ()
    idle = {
        name: [other for other, place in places if place.step == name]
        for name in defined
        if name not in named
    }
    names = Names(sink, named, declared.inputs, idle, () if flow else judges, fields)
    names.defaults(declared.defaults)
    if flow:
        check_written(names, flow.items, flow.places)
        warn_of_flow(sink, flow.items, flow.places)
        warn_of_unread(sink, ((name, place.uses) for name, place in flow.places.items()), outputs.uses)
    else:
        free = [draft for draft in drafts if draft.name not in judges]
        check_free(names, free)
        warn_of_steps(sink, free)
        warn_of_unread(sink, ((draft.name, draft.uses) for draft in free), outputs.uses)
    for use in kept.values():
        for mention in names.in_expression(use, ""):
            mention.tell(sink, "this is read before any step runs", "name only `input`")
    for use in outputs.uses:
        list(names.in_expression(use, ""))
    return names.reads_env
