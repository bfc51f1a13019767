"""No taint is lost: for generated ensembles, what marks each output is what a walk over the graph finds.

The walk is written from the rules alone (docs/policies.md) and shares no code with the labels. It knows the
values too, because which branch is taken decides what a value was made from.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luthier import Runtime
from luthier.spec.control import ControlFlow
from luthier.spec.ensemble import Operation
from luthier.taint import Confidentiality, Integrity, Label, Labelled, Source
from luthier.testing import MemoryAudit, MemoryServer

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = 300
TOOLS = 6
INPUTS = ("i0", "i1")
CHILD = {
    "ensemble": "child",
    "inputs": {"x": {"type": "boolean"}, "y": {"type": "boolean"}},
    "agents": [
        {
            "name": "deep",
            "operation": "tools",
            "config": {"mcp": "dirty", "tool": "deep"},
            "inputs": {"v": "${input.x}"},
        }
    ],
    "outputs": {"r": "${deep.output.v}", "q": "${input.y}"},
}


KINDS = ["tool", "tool", "tool", "transform", "transform", "code", "endorse", "nested"]
KEYS = {
    "tool": ["a", "b"],
    "transform": ["f", "g"],
    "code": ["a", "b"],
    "endorse": ["value"],
    "nested": ["x", "y"],
}
FIELDS = {"tool": [".v"], "transform": [".f", ".g"], "code": [".v"], "endorse": [""], "nested": [".r", ".q"]}
SCRIPT = "def run(context):\n    return {'v': context.input['a'] == context.input['b']}\n"

# What each operation and control step is drawn as, or the test that shows its labels.
OPERATIONS = {
    "tools": "tool",
    "transform": "transform",
    "code": "code",
    "endorse": "endorse",
    "ensemble": "nested",
    "think": "operations/test_think.py::test_an_answer_joins_the_labels_of_all_that_the_model_saw",
    "api": "operations/test_api.py::test_an_answer_to_a_secret_is_as_secret",
    "http": "operations/test_api.py::test_an_answer_to_a_secret_is_as_secret",
    "storage": "operations/test_storage.py::test_a_value_outlasts_the_run_with_its_label",
    "hitl": "operations/test_hitl.py::test_an_answer_is_trusted_and_has_its_giver_as_source",
}
DECISIONS = ["none", "branch", "switch", "foreach", "while", "try", "parallel"]
CONTROLS = {
    "BranchFlow": "branch",
    "SwitchFlow": "switch",
    "ForeachFlow": "foreach",
    "WhileFlow": "while",
    "TryFlow": "try",
    "MapReduceFlow": "test_control_steps.py::test_the_parts_of_a_result_keep_theirs",
    "ParallelFlow": "parallel",
}


class Mark(NamedTuple):
    """What the walk knows of a value: itself, all that it was made from, and whether it is tainted."""

    value: Any
    sources: frozenset[str] = frozenset()
    tainted: bool = False

    def with_(self, *others: Mark) -> Mark:
        return Mark(
            self.value,
            self.sources.union(*(other.sources for other in others)),
            any((self.tainted, *(other.tainted for other in others))),
        )


class Drawn(NamedTuple):
    """A generated ensemble, the inputs that are tainted, and what each tool answers."""

    ensemble: dict[str, Any]
    inputs: dict[str, bool]
    tainted: frozenset[str]
    answers: dict[str, bool]


# The walk. An expression is (kind, …) here and text in the ensemble; `written` makes one of the other.


def written(expression: tuple[Any, ...]) -> str:
    match expression:
        case ("ref", text):
            return f"${{{text}}}"
        case ("text", one, two):
            return f"{written(one)} and {written(two)}"
        case ("choice", condition, one, two):
            return f"${{{inner(condition)} ? {inner(one)} : {inner(two)}}}"
        case ("or", one, two):
            return f"${{{inner(one)} || {inner(two)}}}"
        case ("equal", one, two):
            return f"${{{inner(one)} == {inner(two)}}}"
    raise AssertionError(expression)


def inner(expression: tuple[Any, ...]) -> str:
    return written(expression)[2:-1]


def walked(expression: tuple[Any, ...], names: dict[str, Mark]) -> Mark:
    match expression:
        case ("ref", text):
            return names[text]
        case ("text", one, two):
            left, right = walked(one, names), walked(two, names)
            return Mark(f"{shown(left.value)} and {shown(right.value)}").with_(left, right)
        case ("choice", condition, one, two):
            asked = walked(condition, names)
            return walked(one if asked.value else two, names).with_(asked)
        case ("or", one, two):
            left = walked(one, names)
            return left if left.value else walked(two, names).with_(left)
        case ("equal", one, two):
            left, right = walked(one, names), walked(two, names)
            return Mark(left.value == right.value).with_(left, right)
    raise AssertionError(expression)


def shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def walk(steps: list[dict[str, Any]], drawn: Drawn) -> dict[str, Mark]:
    """The mark of every name that an expression can use, after all steps."""
    names: dict[str, Mark] = {}
    for name, value in drawn.inputs.items():
        bad = name in drawn.tainted
        names[f"input.{name}"] = Mark(value, frozenset({name} if bad else ()), bad)
    for step in steps:
        name = step["name"]
        control, runs = Mark(None), True
        for decision in (step["around"], step["condition"]):
            if decision is not None and runs:  # a condition that is not read decides nothing
                decided = walked(decision, names)
                control, runs = control.with_(decided), bool(decided.value)
        fields = fields_of(step, names, drawn) if runs else dict.fromkeys(step["fields"], Mark(None))
        marks = {field: mark.with_(control) for field, mark in fields.items()}
        for field, mark in marks.items():
            names[f"{name}.output{field}"] = mark
        names[f"{name}.executed"] = Mark(runs).with_(control, *marks.values())
    return names


def fields_of(step: dict[str, Any], names: dict[str, Mark], drawn: Drawn) -> dict[str, Mark]:
    made = {key: walked(expression, names) for key, expression in step["made_of"].items()}
    match step["kind"]:
        case "tool":
            tool = step["tool"]
            answer = Mark(drawn.answers[tool], frozenset({tool}), step["server"] == "dirty")
            return {".v": answer.with_(*made.values())}
        case "transform":
            return {f".{key}": mark for key, mark in made.items()}
        case "endorse":
            value = made["value"]
            return {"": Mark(value.value, value.sources | {f"endorse {step['name']}"})}
        case "code":
            return {".v": Mark(made["a"].value == made["b"].value).with_(*made.values())}
        case _:
            deep = Mark(drawn.answers["deep"], frozenset({"deep"}), tainted=True)
            return {".r": deep.with_(made["x"]), ".q": made["y"]}


# The generator


@st.composite
def drawings(draw: st.DrawFn) -> tuple[Drawn, list[dict[str, Any]], dict[str, tuple[Any, ...]]]:
    refs = [f"input.{name}" for name in INPUTS]
    booleans = list(refs)
    steps: list[dict[str, Any]] = []

    def expression(pool: list[str]) -> tuple[Any, ...]:
        ref = st.sampled_from(pool).map(lambda text: ("ref", text))
        kind = draw(st.sampled_from(["ref", "ref", "ref", "text", "choice", "or", "equal"]))
        count = {"ref": 0, "choice": 3}.get(kind, 2)
        if kind == "ref":
            return draw(ref)
        return (kind, *(draw(ref) for _ in range(count)))

    for number in range(draw(st.integers(2, TOOLS))):
        name = f"s{number}"
        kind = draw(st.sampled_from(KINDS))
        keys = KEYS[kind]
        pool = booleans if kind in ("endorse", "nested") else refs
        simple = kind in ("endorse", "nested")
        made_of = {key: ("ref", draw(st.sampled_from(pool))) if simple else expression(pool) for key in keys}
        condition = None
        if draw(st.integers(0, 2)) == 0:
            condition = ("equal", ("ref", draw(st.sampled_from(refs))), ("ref", draw(st.sampled_from(refs))))
        fields = FIELDS[kind]
        steps.append(
            {"name": name, "kind": kind, "made_of": made_of, "condition": condition, "fields": fields}
            | {"tool": f"t{number}", "server": draw(st.sampled_from(["clean", "dirty"]))}
            | {"before": list(refs), "around": None}
        )
        refs += [f"{name}.output{field}" for field in fields] + [f"{name}.executed"]
        booleans.append(f"{name}.executed")
    outputs = {f"o{number}": expression(refs) for number in range(draw(st.integers(1, 4)))}
    agents = [as_agent(step) for step in steps]
    ensemble = {
        "ensemble": "drawn",
        "inputs": {name: {"type": "boolean"} for name in INPUTS},
        "agents": agents,
        "outputs": {key: written(expression_) for key, expression_ in outputs.items()},
    }
    if draw(st.booleans()):
        ensemble["flow"] = flow_of(draw, steps)
    drawn = Drawn(
        ensemble,
        {name: draw(st.booleans()) for name in INPUTS},
        draw(st.frozensets(st.sampled_from(INPUTS))),
        {tool: draw(st.booleans()) for tool in (*(f"t{n}" for n in range(TOOLS)), "deep")},
    )
    return drawn, steps, outputs


def flow_of(draw: Any, steps: list[dict[str, Any]]) -> list[Any]:
    """The steps in their order, some of them under a decision of a control step."""
    flow: list[Any] = []
    left = list(steps)
    while left:
        size = draw(st.integers(1, len(left)))
        taken, left = left[:size], left[size:]
        names = [step["name"] for step in taken]
        ref = st.sampled_from(taken[0]["before"]).map(lambda text: ("ref", text))
        decision = ("equal", draw(ref), draw(ref))
        kind = draw(st.sampled_from(DECISIONS))
        text = inner(decision)
        match kind:
            case "none":
                flow += names
            case "parallel":  # of steps that read each other only one can be in it
                flow += [{"parallel": names[:1]}, *names[1:]]
            case "try":
                flow.append(
                    {"try": names, "finally": [{"agent": taken[0]["name"], "id": f"again{len(flow)}"}]}
                )
            case "branch":
                flow.append({"branch": {"condition": text, "then": names}})
            case "switch":
                flow.append({"switch": {"value": f"${{{text}}}", "cases": {"true": names}}})
            case "foreach":
                items = f"${{{text} ? [1, 2] : []}}"
                flow.append({"foreach": {"items": items, "steps": names, "maxConcurrency": 1}})
            case _:
                flow.append({"while": {"condition": f"iteration < 2 && {text}", "steps": names}})
        if kind not in ("none", "try", "parallel"):
            for step in taken:
                step["around"] = decision
    return flow


def as_agent(step: dict[str, Any]) -> dict[str, Any]:
    made = {key: written(expression) for key, expression in step["made_of"].items()}
    agent: dict[str, Any] = {"name": step["name"]}
    match step["kind"]:
        case "tool":
            agent |= {"operation": "tools", "config": {"mcp": step["server"], "tool": step["tool"]}}
            agent["inputs"] = made
        case "transform":
            agent |= {"operation": "transform", "config": {"value": made}}
        case "code":
            agent |= {"operation": "code", "config": {"script": "scripts/same.py"}, "inputs": made}
        case "endorse":
            config = {"value": made["value"], "as": {"enum": [True, False, None]}, "reason": "Yes or no."}
            agent |= {"operation": "endorse", "config": config}
        case _:
            agent |= {"operation": "ensemble", "config": {"ensemble": "child"}, "inputs": made}
    if step["condition"] is not None:
        agent["condition"] = written(step["condition"])
    return agent


# The run


async def labels_of(drawn: Drawn, root: Path) -> Labelled[Any]:
    def answering(tool: str) -> Callable[[Any], Any]:
        return lambda _: {"v": drawn.answers[tool]}

    servers = {
        server: MemoryServer(server, {tool: answering(tool) for tool in drawn.answers})
        for server in ("clean", "dirty")
    }
    project = {
        "mcpServers": {
            "clean": {"command": "python", "trust": {"integrity": "trusted", "confidentiality": "public"}},
            "dirty": {"command": "python"},
        }
    }
    inputs = {name: Labelled(value, mark_of_input(name, drawn)) for name, value in drawn.inputs.items()}
    async with Runtime.open(
        project,
        root=root,
        audit=MemoryAudit(),
        transports={id: server.transport for id, server in servers.items()},
        ensembles=[CHILD],
    ) as rt:
        run = await rt.run(drawn.ensemble, inputs)
    assert run.success, run.error
    return run.labelled


def mark_of_input(name: str, drawn: Drawn) -> Label:
    if name not in drawn.tainted:
        return Label()
    return Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("user", name)}))


def named(source: Source) -> str:
    if source.tool == "endorse":
        return f"endorse {source.call_id.rpartition('/')[2].rpartition('.')[2]}"
    return source.tool


@pytest.mark.parametrize(
    ("there", "shown_by", "drawn"),
    [
        ({*get_args(Operation)}, OPERATIONS, KINDS),
        ({kind.__name__ for kind in get_args(ControlFlow)}, CONTROLS, DECISIONS),
    ],
    ids=["operations", "control steps"],
)
def test_whatever_a_flow_is_made_of_is_drawn_or_shown_elsewhere(
    there: set[str], shown_by: dict[str, str], drawn: list[str]
) -> None:
    assert shown_by.keys() == there, "what is new must keep its labels too"
    for name, how in shown_by.items():
        file, _, test = how.partition("::")
        assert how in drawn or f"def {test}(" in (Path(__file__).parent / file).read_text(), name


def test_what_marks_an_output_is_what_reaches_it(tmp_path: Path, figure: Callable[[str], None]) -> None:
    seen: Counter[str] = Counter()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "same.py").write_text(SCRIPT)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(drawings())
    def check(drawing: tuple[Drawn, list[dict[str, Any]], dict[str, tuple[Any, ...]]]) -> None:
        drawn, steps, outputs = drawing
        labelled = asyncio.run(labels_of(drawn, tmp_path))
        names = walk(steps, drawn)
        seen["ensembles"] += 1
        for key, expression in outputs.items():
            label, mark = labelled.at(f"/{key}"), walked(expression, names)
            found = frozenset(map(named, label.sources))
            seen["outputs"] += 1
            seen["tainted"] += mark.tainted
            seen["lost"] += bool(mark.sources - found) or (mark.tainted and not label.integrity)
            assert found == mark.sources, key
            assert (label.integrity is Integrity.untrusted) is mark.tainted, key

    check()
    assert seen["ensembles"] >= EXAMPLES
    figure(
        "labels: {ensembles} generated ensembles, {outputs} outputs of which {tainted} tainted, "
        "{lost} taints lost".format(**{"lost": 0, **seen})
    )
