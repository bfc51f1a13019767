"""Good ensembles are read into what they say, in either dialect, from a file, from text and from Python."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from luthier.errors import SpecError
from luthier.spec import (
    CodeConfig,
    EnsembleConfig,
    FlowStep,
    ParallelFlow,
    Retry,
    Sort,
    ToolsConfig,
    TransformConfig,
    load_ensemble,
    read_ensemble,
)
from luthier.spec.reader import camel
from tests.spec.plain import plain

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.errors import Fault
    from luthier.spec import Step

FULL = """
ensemble: full
description: All of it.
inputs:
  owner: {type: string, required: true, description: Whose., enum: [a, b]}
  count: {type: integer, default: 5}
  free: {}
  nothing:
  short: boolean
  literal: 123
  text: string of text
  made: ${input.owner}/x
  shape: {type: pull, number: 5}
  untyped: {default: {a: 1}}
  optional: {type: array, optional: true}
agents:
  - name: get
    description: Gets it.
    operation: tools
    config: {mcp: git, tool: git_log, timeout: 1500, cacheDiscovery: true, cacheTTL: 60}
    input: {repo: "${input.owner}"}
    condition: ${input.count > 1}
    timeout: 2500
    retry: {maxAttempts: 5, backoff: linear, initialDelay: 0, maxDelay: 500, retryOn: [503, timeout]}
  - name: shape
    operation: transform
    config:
      input: ${get.output}
      parse: csv
      filter: ok
      trim: true
      compact: true
      coerce: {n: number}
      defaults: {a: "${input.count}"}
      rename: {a: b}
      pick: [b, n]
      omit: [c]
      dedupe: n
      sort: {by: n, order: desc}
      offset: 1
      limit: 10
      format: jsonl
      columns: [b]
  - name: script
    operation: code
    config: {script: script://deep/make-it@v2}
    when: get.success
    depends_on: [shape]
  - name: nested
    operation: ensemble
    config: {name: other}
    inputs: ${script.output}
outputs:
  all: ${nested.output || script.output}
version: 2
"""


def only(ensemble: Any, name: str) -> Step:
    found: Step = next(step for step in ensemble.steps if step.name == name)
    return found


def test_everything_that_is_said_is_there() -> None:
    ensemble = read_ensemble(FULL, file="ensembles/x.yaml")
    assert (ensemble.name, ensemble.description, ensemble.file) == ("full", "All of it.", "ensembles/x.yaml")
    assert [step.name for step in ensemble.steps] == ["get", "shape", "script", "nested"]
    get, shape = only(ensemble, "get"), only(ensemble, "shape")
    assert get.config == ToolsConfig(
        server="git", tool="git_log", timeout=1.5, cache_discovery=True, cache_ttl=60.0
    )
    assert (get.operation, get.description, get.timeout) == ("tools", "Gets it.", 2.5)
    assert get.retry == Retry(
        max_attempts=5, backoff="linear", initial_delay=0.0, max_delay=0.5, retry_on=(503, "timeout")
    )
    assert get.inputs is not None
    assert get.inputs.source == {"repo": "${input.owner}"}
    assert get.condition is not None
    assert get.condition.source == "${input.count > 1}"
    assert isinstance(shape.config, TransformConfig)
    assert plain(shape.config) | {"input": None, "defaults": None} == plain(
        TransformConfig(
            parse="csv",
            filter="ok",
            trim=True,
            compact=True,
            coerce={"n": "number"},
            rename={"a": "b"},
            pick=("b", "n"),
            omit=("c",),
            dedupe="n",
            sort=Sort(by="n", descending=True),
            offset=1,
            limit=10,
            format="jsonl",
            columns=("b",),
        )
    )
    assert only(ensemble, "script").config == CodeConfig(script="scripts/deep/make-it.py")
    assert only(ensemble, "script").depends_on == ("shape",)
    assert only(ensemble, "nested").config == EnsembleConfig(ensemble="other")
    assert ensemble.outputs is not None
    assert ensemble.outputs.looked_at == {"nested"}
    assert ensemble.warnings == ()


def test_inputs_are_declarations_type_names_or_defaults() -> None:
    inputs = read_ensemble(FULL).inputs
    told = {
        name: (one.type, one.required, one.default.source if one.default else ..., one.declared)
        for name, one in inputs.items()
    }
    assert told == {
        "owner": ("string", True, ..., True),
        "count": ("integer", False, 5, True),
        "free": (None, False, {}, False),
        "nothing": (None, False, ..., False),
        "short": ("boolean", False, ..., True),
        "literal": (None, False, 123, False),
        "text": (None, False, "string of text", False),
        "made": (None, False, "${input.owner}/x", False),
        "shape": (None, False, {"type": "pull", "number": 5}, False),
        "untyped": (None, False, {"a": 1}, True),
        "optional": ("array", False, ..., True),
    }
    assert (inputs["owner"].description, inputs["owner"].enum) == ("Whose.", ("a", "b"))


def test_null_is_a_value_of_a_transform() -> None:
    ensemble = read_ensemble({"name": "n", "agents": [step("a", {"value": None})]})
    config = only(ensemble, "a").config
    assert isinstance(config, TransformConfig)
    assert config.value is not None
    assert config.value.source is None


def step(name: str, config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "operation": "transform", "config": config or {"value": 1}, **more}


def test_a_file_without_a_name_is_called_by_its_stem(tmp_path: Path) -> None:
    path = tmp_path / "two-clocks.yaml"
    path.write_text("agents: [{name: a, operation: transform, config: {value: 1}}]\n", encoding="utf-8")
    assert load_ensemble(path).name == "two-clocks"
    assert load_ensemble(path).file == str(path)
    assert load_ensemble(str(path), file="shown.yaml").file == "shown.yaml"


def test_python_data_without_a_name_is_refused_and_told_by_path() -> None:
    with pytest.raises(SpecError) as caught:
        read_ensemble({"agents": [step("a", {"value": "${a b}"}), step("b", {"valu": 1}), (1,)]})
    faulty, *others = sorted(map(str, caught.value.faults), key=lambda told: "value:" not in told)
    assert faulty.startswith("agents[0].config.value: ")
    assert faulty.endswith("\n${a b}\n    ^")
    assert others == [
        "`ensemble` is missing",
        "agents[1].config: one of `value`, `merge`, `input` is missing",
        "agents[1].config.valu: unknown key `valu` (did you mean value?)",
        "agents[2]: a step must be a mapping, not a list",
    ]


def test_python_data_must_be_json() -> None:
    with pytest.raises(SpecError) as caught:
        read_ensemble(
            {"name": "n", "agents": [{"name": {1, 2}, 5: 6}], "inputs": {"x": float("nan")}}, file="f"
        )
    assert [str(fault) for fault in caught.value.faults] == [
        "f: agents[0]: the key 5 must be text",
        "f: agents[0].name: this holds a Python set, which is no JSON value",
        "f: inputs.x: this holds nan, which JSON does not have",
    ]
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(SpecError, match="nested more than 64 levels"):
        read_ensemble(deep)


def test_a_flow_is_read_in_every_spelling() -> None:
    text = """
    name: flows
    agents:
      - {name: a, operation: transform, config: {value: 1}}
      - {name: b, operation: transform, config: {value: 2}}
      - {name: c, operation: transform, config: {value: 3}}
    flow:
      - a
      - agent: a
        id: again
        input: {x: "${a.output}"}
        condition: ${a.success}
        timeout: 100
        retry: {attempts: 2}
        depends_on: [a]
      - parallel: [b]
      - parallel: {steps: [{agent: b, name: more}], waitFor: first}
      - type: parallel
        id: last
        wait_for: any
        steps: [c, {parallel: [{agent: c, id: inner}]}]
    """
    flow = read_ensemble(text).flow
    assert flow is not None
    first, again, two, three, last = flow
    assert first == FlowStep(step="a", name="a")
    assert isinstance(again, FlowStep)
    assert (again.step, again.name, again.timeout, again.depends_on) == ("a", "again", 0.1, ("a",))
    assert again.retry == Retry(max_attempts=2)
    assert again.inputs is not None
    assert again.condition is not None
    assert two == ParallelFlow(name="parallel_2", steps=(FlowStep(step="b", name="b"),))
    assert three == ParallelFlow(
        name="parallel_3", steps=(FlowStep(step="b", name="more"),), wait_for="first"
    )
    inner = ParallelFlow(name="last_1", steps=(FlowStep(step="c", name="inner"),))
    assert last == ParallelFlow(name="last", steps=(FlowStep(step="c", name="c"), inner), wait_for="any")


def test_warnings_stay_with_the_ensemble() -> None:
    text = "agents: [{name: a, operation: transform, config: {value: '${input.x}'}}]"
    at = text.index("input")
    (warning,) = read_ensemble(text, file="e.yaml").warnings
    assert (warning.place, warning.message) == (f"e.yaml:1:{at + 1}", "the input `x` is not declared")
    assert warning.excerpt == f"{text}\n{' ' * at}^"


def test_the_environment_that_expressions_read_is_noted_with_its_place() -> None:
    text = "agents: [{name: a, operation: transform, config: {value: '${env.A}${env[\"B\"]}'}}]"
    reads = read_ensemble(text + "\noutputs: ${env.A}", file="e.yaml").reads_env
    assert {name: fault.place for name, fault in reads.items()} == {
        "A": f"e.yaml:1:{text.index('env.A') + 1}",
        "B": f"e.yaml:1:{text.index('env[') + 1}",
    }


def test_a_step_knows_where_it_is_written() -> None:
    ensemble = read_ensemble(FULL.lstrip("\n"), file="e.yaml")
    assert only(ensemble, "get").origin.place("config", "tool") == "e.yaml:19:30 (agents[0].config.tool)"
    assert only(ensemble, "get").origin.place("inputs", "repo") == "e.yaml:20:19 (agents[0].input.repo)"
    assert only(ensemble, "script").origin.place("condition") == "e.yaml:46:11 (agents[2].when)"


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,4})?", fullmatch=True).map(lambda name: f"s-{name}")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="${\\\x7f", exclude_categories=["Cc", "Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
TIMES = st.integers(1, 100_000)


@st.composite
def ensembles(draw: st.DrawFn) -> dict[str, Any]:
    """An ensemble in canonical spelling whose steps name only earlier steps."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    steps = []
    for index, name in enumerate(names):
        config: dict[str, dict[str, Any]] = {
            "tools": {"mcp": "git", "tool": draw(TEXTS.filter(str.strip)), "timeout": draw(TIMES)},
            "code": {"script": f"scripts/{name}"},
            "transform": {"value": draw(VALUES)},
            "ensemble": {"ensemble": "other"},
        }
        operation = draw(st.sampled_from(sorted(config)))
        one: dict[str, Any] = {"name": name, "operation": operation, "config": config[operation]}
        earlier = st.sampled_from(names[:index]) if index else st.nothing()
        optional = {
            "description": TEXTS,
            "inputs": st.dictionaries(
                TEXTS, VALUES | earlier.map(lambda other: f"${{{other}.output}}"), max_size=3
            ),
            "condition": st.booleans() | earlier.map(lambda other: f"${{{other}.failed ? true : false}}"),
            "depends_on": st.lists(earlier, max_size=2) if index else st.just([]),
            "timeout": TIMES,
            "retry": st.fixed_dictionaries(
                {},
                optional={
                    "max_attempts": st.integers(1, 9),
                    "backoff": st.sampled_from(["linear", "fixed"]),
                    "initial_delay": TIMES,
                    "retry_on": st.lists(st.integers(400, 599) | st.just("timeout"), max_size=3),
                },
            ),
        }
        one |= draw(st.fixed_dictionaries({}, optional=optional))
        steps.append(one)
    inputs = draw(
        st.dictionaries(
            NAMES,
            st.fixed_dictionaries({"default": VALUES, "required": st.booleans()})
            | st.sampled_from(["string", 5]),
            max_size=3,
        )
    )
    outputs = {"last": f"${{{names[-1]}.output}}", "fixed": draw(VALUES)}
    return {"ensemble": "made", "inputs": inputs, "agents": steps, "outputs": outputs}


def printed(data: dict[str, Any]) -> str:
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    stream = io.StringIO()
    writer.dump(data, stream)
    return stream.getvalue()


@settings(max_examples=20, deadline=None)
@given(ensembles())
def test_printed_and_read_again_an_ensemble_is_the_same(data: dict[str, Any]) -> None:
    assert plain(read_ensemble(printed(data))) == plain(read_ensemble(data))


OTHER_WORDS = {
    "ensemble": "name",
    "inputs": "input",
    "outputs": "output",
    "agents": "steps",
    "condition": "when",
}


def in_other_words(data: dict[str, Any]) -> dict[str, Any]:
    """The same ensemble in the other dialect, in camelCase."""

    def turned(one: dict[str, Any]) -> dict[str, Any]:
        changed = {OTHER_WORDS.get(key, camel(key)): value for key, value in one.items()}
        if "retry" in changed:
            changed["retry"] = {camel(key): value for key, value in changed["retry"].items()}
        return changed

    top = turned(data)
    return top | {"steps": [turned(one) for one in top["steps"]]}


@settings(max_examples=20, deadline=None)
@given(ensembles())
def test_both_dialects_say_the_same(data: dict[str, Any]) -> None:
    assert plain(read_ensemble(in_other_words(data))) == plain(read_ensemble(data))


@settings(max_examples=20, deadline=None)
@given(ensembles(), st.data())
def test_a_damaged_ensemble_is_refused_with_places_or_read(
    data: dict[str, Any], choice: st.DataObject
) -> None:
    text = printed(data)
    at = choice.draw(st.integers(0, len(text)))
    damaged = text[:at] + choice.draw(st.sampled_from(["", "x", ":", "\n", "${", "- ", "'"])) + text[at + 1 :]
    lines = re.split(r"\r\n|\r|\n", damaged)
    for fault in faults_of(damaged):
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1


def faults_of(text: str) -> tuple[Fault, ...]:
    try:
        return read_ensemble(text, file="e.yaml").warnings
    except SpecError as error:
        return error.faults
