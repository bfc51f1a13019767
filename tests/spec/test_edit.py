"""A text is edited at one place; every other character stays, or nothing is edited at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import SpecError
from luthier.spec.edit import put, remove
from luthier.spec.emit import flow, members
from luthier.spec.load import load

if TYPE_CHECKING:
    from luthier.spec.origin import KeyPath

GIT = {"command": "uvx", "args": ["-y", "@scope/x"]}

PUTS: dict[str, tuple[str, KeyPath, Any, str]] = {
    "behind the last of a block, and behind the comments that belong to it": (
        "# top\nservers:\n  time: {command: uvx}  # flow\n\n  git:\n    command: uvx\n    # of git\n# end\n",
        ("servers", "new"),
        GIT,
        (
            "# top\nservers:\n  time: {command: uvx}  # flow\n\n  git:\n    command: uvx\n    # of git\n"
            '  new:\n    command: uvx\n    args: [-y, "@scope/x"]\n# end\n'
        ),
    ),
    "under a key that is made": (
        "store: x",
        ("mcpServers", "new"),
        GIT,
        'store: x\nmcpServers:\n  new:\n    command: uvx\n    args: [-y, "@scope/x"]\n',
    ),
    "under a key without a value": (
        "servers:  # none yet\nstore: x\n",
        ("servers", "new"),
        {"command": "uvx"},
        "servers:  # none yet\n  new:\n    command: uvx\nstore: x\n",
    ),
    "under a key with an empty value": (
        "servers: {}  # none yet\nstore: x\n",
        ("servers", "new"),
        {"command": "uvx"},
        "servers:  # none yet\n  new:\n    command: uvx\nstore: x\n",
    ),
    "in an empty mapping": ("{}\n", ("a",), 1, '{"a": 1}\n'),
    "in JSON": (
        '{\n  "a": {"x": 1}\n}\n',
        ("b",),
        {"y": "z"},
        '{\n  "a": {"x": 1},\n  "b": {"y": "z"}\n}\n',
    ),
    "in flow": ("a: {b: 1, c: 2}\n", ("a", "d"), [1], "a: {b: 1, c: 2, d: [1]}\n"),
    "in a list in flow": ("a: [b]\n", ("a", 1), "c", "a: [b, c]\n"),
    "in a list of blocks": (
        "a:\n- id: b\n  # of b\n- id: c   # c\n# end\n",
        ("a", 2),
        {"id": "d", "e": [{"f": 1, "g": [{}]}]},
        "a:\n- id: b\n  # of b\n- id: c   # c\n- id: d\n  e:\n    - f: 1\n      g:\n        - {}\n# end\n",
    ),
    "in a list of texts": ("a:\n  - b\n", ("a", 1), "c", "a:\n  - b\n  - c\n"),
    "among bare expressions": (
        "a: ${x ? 'y' : 'z'}\nb: {{c}}\n",
        ("b",),
        2,
        "a: ${x ? 'y' : 'z'}\nb: 2\n",
    ),
    "in place of another": ("a: 1  # one\nb: 2\n", ("a",), {"c": 3}, "a:  # one\n  c: 3\nb: 2\n"),
    "in place of an item": (
        "a:\n  - x: 1\n    y: 2 # two\n  - z\n",
        ("a", 0),
        {"w": 1},
        "a:\n  - w: 1 # two\n  - z\n",
    ),
    "within flow": ("a: {x: 1, y: 2}\n", ("a", "x"), "three: four", 'a: {x: "three: four", y: 2}\n'),
    "behind a block of text": (
        "a:\n  text: |\n    one\n    two\n\nb: 1\n",
        ("a", "c"),
        1,
        "a:\n  text: |\n    one\n    two\n  c: 1\n\nb: 1\n",
    ),
    "behind an alias": (
        "base: &b {x: 1}\na:\n  one: *b\nz: 1\n",
        ("a", "two"),
        2,
        "base: &b {x: 1}\na:\n  one: *b\n  two: 2\nz: 1\n",
    ),
    "behind a key without a value": ("a:\n  b:\n\n# end\n", ("a", "c"), 1, "a:\n  b:\n  c: 1\n\n# end\n"),
}

REMOVALS: dict[str, tuple[str, KeyPath, str]] = {
    "a line of a block": ("a:\n  # one\n  b: 1 # of b\n  c: 2\n", ("a", "b"), "a:\n  # one\n  c: 2\n"),
    "a whole block": ("a:\n  b:\n    c: 1\n    d: [\n      2]\ne: 3\n", ("a", "b"), "a:\ne: 3\n"),
    "an item": ("a:\n- x: 1\n  y: 2\n- z\n", ("a", 0), "a:\n- z\n"),
    "an item below its dash": ("a:\n  -\n    x: 1\n  - z\n", ("a", 0), "a:\n  - z\n"),
    "the first key of an item": ("a:\n- x: 1\n  y: 2\n", ("a", 0, "x"), "a:\n- y: 2\n"),
    "the first in flow": ("a: {b: 1, c: 2}\n", ("a", "b"), "a: {c: 2}\n"),
    "the last in flow": ("a: {b: 1, c: 2}\n", ("a", "c"), "a: {b: 1}\n"),
    "the only one in flow": ("a: {b: 1}\n", ("a", "b"), "a: {}\n"),
    "the first in JSON": ('{\n  "a": 1,\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
    "the last in JSON": ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
}

HOPELESS = [
    pytest.param("b: &x {y: 1}\na: *x\n", ("a", "z"), id="in an alias"),
    pytest.param("b: &x {y: 1}\na: {<<: *x}\n", ("a", "y"), id="a key that is merged in"),
    pytest.param("? a\n: b\n", ("a",), id="a key of an old form"),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "path", "value", "wanted"), PUTS.values(), ids=PUTS)
def test_a_value_is_put(text: str, path: KeyPath, value: Any, wanted: str, end: str) -> None:
    edited = put(load(text.replace("\n", end)), path, value)
    assert edited.text == (wanted.replace("\n", end) if "\n" in text else wanted)
    assert edited.get(path) == value


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "path", "wanted"), REMOVALS.values(), ids=REMOVALS)
def test_a_value_is_removed(text: str, path: KeyPath, wanted: str, end: str) -> None:
    assert remove(load(text.replace("\n", end)), path).text == wanted.replace("\n", end)


@pytest.mark.parametrize(("text", "path"), HOPELESS)
def test_what_cannot_be_edited_alone_is_not_edited(text: str, path: KeyPath) -> None:
    with pytest.raises(SpecError, match="cannot be edited here"):
        put(load(text), path, 5)


def test_the_last_key_of_a_file_stays() -> None:
    with pytest.raises(SpecError, match="cannot be edited here"):
        remove(load("a: 1\n"), ("a",))


KEYS = st.sampled_from(["a", "b", "two words", "x: y", "1", "null", "é"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS | st.sampled_from([1.5, "${a ? b : c}"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
MAPPINGS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@given(data=MAPPINGS, key=KEYS, value=VALUES, seed=st.data())
@settings(deadline=None)
def test_any_value_is_put_anywhere_and_nothing_else_changes(
    data: dict[str, Any], key: str, value: Any, seed: st.DataObject
) -> None:
    lines = seed.draw(st.sampled_from([[flow(data)], members(data, 0)]))
    text = "".join(f"{line} # {number}\n" for number, line in enumerate(lines))
    document = load(text)
    where = seed.draw(st.sampled_from(paths(document.data)[1:]))
    match document.get(where):
        case list() as items:
            path = (*where, len(items))
        case dict():
            path = (*where, key)
        case _:
            path = where
    edited = put(document, path, value)
    assert edited.get(path) == value
    if not document.holds(path):
        assert all(f"# {number}\n" in edited.text for number, _ in enumerate(lines))


def paths(data: Any, path: KeyPath = ()) -> list[KeyPath]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, item in items for found in paths(item, (*path, key)))]
