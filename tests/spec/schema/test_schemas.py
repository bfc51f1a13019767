"""The schemas for editors and the readers judge alike: every file here, and thousands of changes to them."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from luthier.errors import SpecError
from luthier.spec import http_trigger, load, read, steps
from luthier.spec.operations import READERS
from luthier.spec.python import document_of
from luthier.spec.read import examine
from luthier.spec.read_project import examine_project
from luthier.spec.reader import camel
from luthier.spec.schema import SCHEMAS
from luthier.spec.schema.operations import CONFIGS
from tests.spec.test_cases import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from luthier.errors import Fault

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "cases"
JUDGES = {kind: jsonschema_rs.Draft202012Validator(schema) for kind, schema in SCHEMAS.items()}

BEYOND = (
    # What one part of the file says of another.
    r"there is no step|is not in the flow|stands in the flow|there are two|comes after|does not run before",
    r"names itself|depends on itself|wait for each other|stands inside|is known only|a default may name",
    r"defaults need each other|this is read before|the ensemble has no `state`|the state has no field",
    r"^state\.initial\.|the default must be|`id` says|less than the time|stands in the entry and",
    r"^triggers?(\[\d\])?: .* cannot be a tool's name|speaks stdio|a `stdio` server|holds no pattern",
    r"there is no hole|no argument has|script_sha256",
    # What takes a parser: of expressions, addresses, paths, patterns, arguments and schemas.
    r"cannot be named|expression ends|is not closed|unexpected|empty condition|does not lie below scripts",
    r"cannot be used: |must do without looking|the lower bound|holds no expression|no success is a number",
    r"the url |the address |does not begin with https|`url` |fits no tool's address|is no address",
    r"is not a tool address",
    r"is not the name of a file|absolute path without|sqlite|is the path of a SQLite|the pattern of",
    r"the argument |the program |begins with -|cannot be printed|not a name of an environment variable",
    r"password of `store`|cannot have one name",
    r"is no variable|stands twice|the same variables|inside the project|folder of their own|another resource",
    # What takes the machine.
    r"cannot be read|own folder, or one around|lies among what",
)
"""Faults that no schema can know, as they are told."""


def faults_of(kind: str, data: Any) -> list[Fault]:
    document = document_of(data, file="f.yaml")
    read = examine_project(document, root=Path("/nowhere"))[1] if kind == "project" else examine(document)[1]
    return [fault for fault in read if not fault.warning]


def exemplars() -> list[Any]:
    found = []
    for kind in SCHEMAS:
        for index, data in enumerate(load(CASES / "schema" / f"{kind}s.yaml").data):
            found.append(pytest.param(kind, data, id=f"{kind} {index}"))
    return found


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below the top."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    made = copy.deepcopy(data)
    at(made, path[:-1])[path[-1]] = value
    return made


def beyond(fault: Fault) -> bool:
    return any(re.search(pattern, fault.message) for pattern in BEYOND)


def disagreement(kind: str, data: Any) -> str:
    """What the two say of it, where that differs."""
    faults, refused = faults_of(kind, data), not JUDGES[kind].is_valid(data)
    known = [fault for fault in faults if not beyond(fault)]
    if refused and not faults:
        error = next(iter(JUDGES[kind].iter_errors(data)))
        return f"only the schema refuses it: {error.instance_path} {error.message[:300]}"
    return f"only the reader refuses it: {known[0].message}" if known and not refused else ""


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_one(kind: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[kind])


@pytest.mark.parametrize(("kind", "data"), exemplars())
def test_what_uses_every_key_is_accepted_by_both(kind: str, data: Any) -> None:
    assert [fault.message for fault in faults_of(kind, data) if "does not lie" not in fault.message] == []
    assert [(error.instance_path, error.message) for error in JUDGES[kind].iter_errors(data)] == []


def test_every_operation_has_a_schema() -> None:
    assert CONFIGS.keys() == READERS.keys()


VALUES: tuple[Any, ...] = (None, True, 0, -1, 2.5, "", "text", "${input.x}", [], [1], {}, {"qqqq": 1})


@pytest.mark.parametrize(("kind", "data"), exemplars())
def test_both_judge_every_value_that_is_replaced_alike(kind: str, data: Any) -> None:
    for path in places(data):
        for value in VALUES:
            assert disagreement(kind, changed(data, path, value)) == "", (path, value)


@pytest.mark.parametrize(("kind", "data"), exemplars())
def test_both_judge_every_key_that_is_left_out_or_added_alike(kind: str, data: Any) -> None:
    for path in places(data):
        made = copy.deepcopy(data)
        del at(made, path[:-1])[path[-1]]
        assert disagreement(kind, made) == "", path
        if isinstance(at(data, path), dict):
            assert disagreement(kind, changed(data, (*path, "qqqq"), 1)) == "", path


@pytest.mark.parametrize(("kind", "data"), exemplars())
def test_both_know_the_same_spellings_of_every_key(kind: str, data: Any) -> None:
    for path in places(data):
        if not isinstance(path[-1], str):
            continue
        snake = re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"_{found[0].lower()}", path[-1])
        for other in {snake, camel(path[-1])} - {path[-1]}:
            made = copy.deepcopy(data)
            around = at(made, path[:-1])
            around[other] = around[path[-1]]
            assert disagreement(kind, made) == "", (path, f"{other} beside it")
            del around[path[-1]]
            assert disagreement(kind, made) == "", (path, other)


def spelled(keys: Sequence[str]) -> frozenset[str]:
    """In the spelling of the reader, and in camelCase."""
    return frozenset(other for key in keys for other in (key, camel(key)))


def closed(schema: Any) -> Iterator[frozenset[str]]:
    """The keys of every mapping of a schema that takes no others."""
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False:
            yield frozenset(schema["properties"])
        for value in schema.values():
            yield from closed(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from closed(value)


def test_the_schemas_have_the_keys_that_the_readers_say_they_know_and_no_others() -> None:
    """A key that is new to a reader belongs into src/luthier/spec/schema and tests/cases/schema too."""
    known: dict[frozenset[str], str] = {}
    for kind, data in (case.values for case in exemplars()):
        for path in ((), *places(data)):
            if isinstance(at(data, path), dict):
                for fault in faults_of(kind, changed(data, (*path, "qqqq"), 1)):
                    words = fault.suggestion.partition("known here: ")[2]
                    if "unknown key `qqqq`" in fault.message and words:
                        known[spelled(words.split(", "))] = f"{kind} {path}"
    idle = tuple(
        map(spelled, (steps.UNUSED, read.UNUSED, http_trigger.LATER, ("track_in_state",)))
    )  # read, and not told of
    written = {keys for schema in SCHEMAS.values() for keys in closed(schema)}
    for unused in idle:
        written |= {keys - unused for keys in written if unused < keys}
    assert len(known) > 40
    told = {keys for keys in known if "backend" not in keys}  # told of with the keys of other actions
    assert {known[keys]: sorted(keys) for keys in told - written} == {}
    others = {keys for keys in written if keys not in known and "backend" not in keys and len(keys) > 1}
    others = {keys for keys in others if not any(unused < keys for unused in idle)}
    message, around = frozenset({"role", "content"}), frozenset({"mapReduce", "map_reduce"})
    (server,) = (keys for keys in known if "inheritEnv" in keys)
    assert others == {message, around, server - {"transport"}}  # read by no reader of their own


@pytest.mark.parametrize(("kind", "case"), cases())
def test_every_text_with_faults_is_refused_where_a_schema_can_know(kind: str, case: dict[str, Any]) -> None:
    kind = kind if kind == "project" else "ensemble"
    try:
        data = load(case["text"], file="f.yaml").data
    except SpecError:
        return  # no YAML: an editor's parser says so
    assert disagreement(kind, data) == ""


def ensembles() -> list[Any]:
    found = {path.name: load(path).data for path in ROOT.glob("examples/*/ensembles/*.yaml")}
    found |= {path.name: load(path).data for path in (CASES / "seeds_testing").glob("ensembles/*.yaml")}
    for path in (CASES / "seeds").glob("*.yaml"):
        found[f"seeds/{path.stem}"] = load(load(path).data["ensemble"], file="f.yaml").data
    return [pytest.param(data, id=name) for name, data in found.items()]


@pytest.mark.parametrize("data", ensembles())
def test_every_ensemble_of_the_repository_is_judged_by_both_alike(data: Any) -> None:
    assert disagreement("ensemble", data) == ""


def written() -> list[Any]:
    """Every YAML file that the README and the pages write out."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for example in re.finditer(
            r"<!-- file: (\S+\.yaml) -->\n```yaml\n(.*?)\n```", page.read_text(), re.DOTALL
        ):
            name = Path(example[1])
            kind = "project" if name.name == "luthier.yaml" else "ensemble"
            if kind == "project" or name.parent.name == "ensembles":
                found.append(pytest.param(kind, example[2], id=f"{page.stem} {name}"))
    return found


@pytest.mark.parametrize(("kind", "text"), written())
def test_every_file_that_the_pages_show_is_accepted(kind: str, text: str) -> None:
    data = load(text, file="f.yaml").data
    assert [(error.instance_path, error.message) for error in JUDGES[kind].iter_errors(data)] == []
