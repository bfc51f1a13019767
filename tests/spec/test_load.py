"""YAML is read as YAML 1.2, bounded, with expressions as scalars and with true positions."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from luthier.errors import SpecError
from luthier.spec import load
from luthier.spec.compose import MAX_VALUES
from luthier.spec.load import MAX_BYTES
from luthier.spec.scanner import extent

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.errors import Fault

SCALARS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "nUll": "nUll",
    "true": True,
    "False": False,
    "yes": "yes",
    "on": "on",
    "no": "no",
    "12": 12,
    "-12": -12,
    "+12": 12,
    "007": 7,
    "0o17": 15,
    "0x1F": 31,
    "1_000": "1_000",
    "1.5": 1.5,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "-1.5E-3": -0.0015,
    "1:30": "1:30",
    "2025-06-18": "2025-06-18",
    "2025-06-18T10:00:00Z": "2025-06-18T10:00:00Z",
    "=": "=",
    "<<": "<<",
    "'12'": "12",
    '"true"': "true",
    '"a\\tb\\u00e9"': "a\tbé",
    "!!str 12": "12",
    "! 12": "12",
    "!!int 12": 12,
    "!!float 1.5": 1.5,
    "!!null ~": None,
    "http://x#y": "http://x#y",
    "[a, 1]": ["a", 1],
    "{a: 1}": {"a": 1},
    "!!map {a: 1}": {"a": 1},
    "!!seq [a]": ["a"],
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=map(repr, SCALARS))
def test_a_value_means_what_the_core_schema_says(text: str, value: Any) -> None:
    read = load(f"- {text}\n").data[0]
    assert (read, type(read)) == (value, type(value))


EXPRESSIONS = {
    "a colon": ("a: ${x ? 'y' : 'z'}", "${x ? 'y' : 'z'}"),
    "braces": ("a: {{x.y}}", "{{x.y}}"),
    "braces with a colon": ("a: {{ x ? 'y' : {k: 1}.k }}", "{{ x ? 'y' : {k: 1}.k }}"),
    "a hash": ("a: ${x == ' # '} # comment", "${x == ' # '}"),
    "a comment behind": ("a: ${x} # ${y}", "${x}"),
    "a quoted close": ("a: ${x == '}: ' || y}", "${x == '}: ' || y}"),
    "text behind": ("a: ${x ? 1 : 2}/more text", "${x ? 1 : 2}/more text"),
    "a second expression behind": ("a: ${x} is ${y ? 'p: q' : 'r'}.", "${x} is ${y ? 'p: q' : 'r'}."),
    "braces first, then another": ("a: {{x}} ${y ? 1 : 2}", "{{x}} ${y ? 1 : 2}"),
    "blanks behind": ("a: ${x}   ", "${x}"),
    "a tab inside": ("a: ${x}\ty", "${x}\ty"),
    "a colon in text behind": ("a: ${x}:y", "${x}:y"),
    "a line that goes on": ("a: ${x ? 1 : 2} and\n   more\n\n   of it", "${x ? 1 : 2} and more\nof it"),
    "an expression on a line that goes on": ("a: ${x} and\n  ${y ? 1 : 2}", "${x} and ${y ? 1 : 2}"),
    "an expression over two lines is plain text": ("a: ${x ||\n  y}", "${x || y}"),
    "one that does not close is plain text": ("a: ${x", "${x"),
    "braces that do not close so are a mapping": ("a: {x: {y: 1}}", {"x": {"y": 1}}),
    "a quoted one": ("a: \"${x ? 'y' : 'z'}\"", "${x ? 'y' : 'z'}"),
    "a dollar alone": ("a: $x", "$x"),
    "no end of line": ("a: ${x ? 1 : 2}", "${x ? 1 : 2}"),
    "windows line ends": ("a: ${x ? 1 : 2}\r\nb: 1", "${x ? 1 : 2}"),
    "the end of the document": ("a: ${x} y\n...\n", "${x} y"),
}


@pytest.mark.parametrize(("text", "value"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_bare_expression_is_read_to_its_close(text: str, value: Any) -> None:
    assert load(text).data["a"] == value


def test_bare_expressions_stand_wherever_block_scalars_stand() -> None:
    text = "- ${a ? 1 : 2}\n-\n  - {{b ? 1 : 2}}\nk\n"
    with pytest.raises(SpecError):
        load(text)
    assert load("- ${a ? 1 : 2}\n-\n  - {{b ? 1 : 2}}\n").data == ["${a ? 1 : 2}", ["{{b ? 1 : 2}}"]]
    assert load("${a}: {{b}}\n").data == {"${a}": "{{b}}"}
    assert load("&x ${a ? 1 : 2}\n").data == "${a ? 1 : 2}"


def test_what_follows_a_bare_expression_keeps_its_place() -> None:
    document = load("a: ${x ? 'y' : 'z'}\nb:\n  - {{p ? q : r}} # c\n  - end\n")
    assert document.mark(("b", 1)) == (4, 5)


def test_looking_for_a_close_is_linear_in_the_line() -> None:
    line = "${" * 200_000
    assert extent(line) == len(line)


def test_aliases_and_merge_keys_give_the_values_they_name() -> None:
    text = """
    base: &base {a: 1, b: 2}
    other: &other {b: 3, c: 4}
    both: {<<: [*base, *other], d: 5}
    own: {a: 0, <<: *base}
    quoted: {"<<": 1}
    list: &list [1, *base]
    again: *list
    text: &text hello
    more: *text
    """
    data = load(text).data
    assert data["both"] == {"a": 1, "b": 2, "c": 4, "d": 5}
    assert data["own"] == {"a": 0, "b": 2}
    assert data["quoted"] == {"<<": 1}
    assert data["again"] == [1, {"a": 1, "b": 2}]
    assert data["more"] == "hello"


def test_what_a_merge_brings_in_is_found_where_it_is_written() -> None:
    document = load("base: &base\n  a: 1\nit:\n  <<: *base\n  b: 2\n")
    assert document.mark(("it", "a")) == (2, 6)
    assert document.mark(("it", "b"), key=True) == (5, 3)


def fault_of(text: str | Path) -> Fault:
    with pytest.raises(SpecError) as caught:
        load(text)
    assert len(caught.value.faults) == 1
    return caught.value.faults[0]


def test_a_file_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * MAX_BYTES)
    assert fault_of(path).message == "the file is empty"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert fault_of(path).message == "the file is larger than 1024 KiB"
    assert fault_of("#" * (MAX_BYTES + 1)).message == "the file is larger than 1024 KiB"


def test_nesting_is_bounded_in_every_form() -> None:
    assert load("[" * 64 + "]" * 64).data
    message = "this is nested more than 64 levels deep"
    assert fault_of("[" * 70 + "]" * 70).message == message
    assert fault_of("[" * 1_000_000).message == message
    assert fault_of("- " * 500_000).message == message
    assert fault_of("{a: " * 100_000).message == message
    blocks = "".join(" " * depth + "a:\n" for depth in range(100))
    assert fault_of(blocks).message == message


def test_aliases_cannot_stand_for_too_much() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert fault_of("\n".join(lines)).message == "*l3 makes the file too large or too deep"
    deep = ["d0: &d0 [x]"] + [f"d{n}: &d{n} {'[' * 20}*d{n - 1}{']' * 20}" for n in range(1, 9)]
    assert fault_of("\n".join(deep)).message == "*d3 makes the file too large or too deep"


def test_the_number_of_values_is_bounded() -> None:
    most = f"a: &a [{'1, ' * 988}]\nb: [{'*a, ' * (MAX_VALUES // 1000)}]\n"
    assert load(most + "c: [1]\n").data
    assert fault_of(f"{most}c: [{'1, ' * 2000}]\n").message == "the file holds more than 100000 values"


def test_bytes_that_are_no_text_are_named_by_place(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes("a: é\nb: ".encode() + b"\xff\n")
    fault = fault_of(path)
    assert fault.place == f"{path}:2:4"
    assert fault.message == "this is not UTF-8 text: the byte 0xff does not belong here"
    path.write_bytes(b"\xef\xbb\xbfa: \xc3")
    assert fault_of(path).place == f"{path}:1:4"
    path.write_bytes(b"\xff\xfea\x00:\x00 \x00\x00\xd8")
    assert fault_of(path).message.startswith("this is not UTF-16 text")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_are_no_part_of_the_text(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes("a: é\nb: 1\n".encode(encoding))
    document = load(path)
    assert document.data == {"a": "é", "b": 1}
    assert document.mark(("a",), key=True) == (1, 1)
    assert load("\ufeffa: 1").data == {"a": 1}


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "none.yaml").message == "the file cannot be read: No such file or directory"
    assert fault_of(tmp_path).message == "the file cannot be read: Is a directory"


def test_line_separators_of_unicode_end_no_line() -> None:
    assert load("a: x\u2028y\nb: '\x85'\n").mark(("b",)) == (2, 4)


def test_a_question_mark_is_never_dropped_from_a_key() -> None:
    assert load("{'?a': 1, ? b : 2}").data == {"?a": 1, "b": 2}
    assert fault_of("{?a: 1}").message == "a text cannot begin with ?"


def test_escaped_pairs_of_surrogates_are_one_character_and_halves_are_refused() -> None:
    assert load('{"\\ud83d\\ude00": "\\ud83d\\ude00"}').data == {"\U0001f600": "\U0001f600"}
    assert fault_of('a: "\\ud83d"').message == "this text escapes half a character"


keys = st.text(max_size=60)  # YAML reads keys of up to 1024 characters as they are written
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(keys, json_values, min_size=1, max_size=4))
def test_json_is_read_as_json(data: dict[str, Any]) -> None:
    assert load(json.dumps(data)).data == data


FRAGMENTS = """
a:| - |?|:|{|}|[|]|,|'|"|\\|&x |*x|!t |!!int |\t|#| # c|%YAML 1.2|---|...|${|{{|}}|${a ? 'b' : c}|<<: |1e5
~|true|@|`|- - - |  |%|x|é|\u2028|\x85|\x00|\x1b|!<t> |agents:|>+1|\\x4|\\u12|"\\\\"|*|&|.inf|0x1f
""".replace("\n", "|").split("|")
shards = st.lists(st.sampled_from([*FRAGMENTS, "\n", "\n  ", "\n    ", "\r\n", "\r", "a: |2\n"]), max_size=30)


@settings(max_examples=50, deadline=None)
@given(st.text() | shards.map("".join))
def test_any_text_is_either_data_or_faults_inside_the_text(text: str) -> None:
    try:
        document = load(text, file="f")
    except SpecError as error:
        places = [(fault.line, fault.column) for fault in error.faults]
    else:
        json.dumps(document.data)
        places = [document.mark(path) for path in _paths(document.data)]
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    for line, column in places:
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 2


def _paths(value: Any) -> list[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, item in pairs for rest in _paths(item))]


PLAIN = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="${}?:"))
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(data=st.dictionaries(PLAIN, plain_values, min_size=1, max_size=4), flow=st.booleans())
def test_what_another_writer_of_yaml_wrote_is_read_back(data: dict[str, Any], *, flow: bool) -> None:
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = flow
    stream = io.StringIO()
    writer.dump(data, stream)
    assert load(stream.getvalue()).data == data
