"""Where expressions begin and end in text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.expr import scan_close
from luthier.expr.scan import Segment, UnclosedError, has_expression, segments
from tests.expr.generate import LAW

CLOSED = [
    ("${a}", 3),
    ("${}", 2),
    ("{{a}}", 3),
    ("{{ {a: 1} }}", 10),
    ("{{{a: {b: 1}}}}", 13),
    ("${ {a: {b: 1}} }", 15),
    ("${'}'}", 5),
    ("${\"}\" + '}'}", 11),
    ("${'\\'}'}", 7),
    ("${'\\\\'}", 6),
    ("${'a\nb'}", 7),
    ("${a} ${b}", 3),
    ("${ ${a} }", 8),
    ("${'${b}'}", 8),
    ("{{'}}'}}", 6),
    ("{{ '{{' }}", 8),
]
OPEN = ["${a", "${", "{{a}", "{{ {a} }", "${'a}", '${"}', "${ {a }", "{{ a } }"]


@pytest.mark.parametrize(("text", "close"), CLOSED)
def test_the_close_of_an_opening_is_found(text: str, close: int) -> None:
    assert scan_close(text, 2) == close
    assert scan_close("x: " + text + " }}", 5) == close + 3


@pytest.mark.parametrize("text", OPEN)
def test_an_opening_without_its_close_has_none(text: str) -> None:
    assert scan_close(text, 2) == -1
    with pytest.raises(UnclosedError) as caught:
        segments("ok ${x} " + text)
    assert caught.value.start == 8


def test_text_is_cut_into_text_and_expressions_with_their_places() -> None:
    assert segments("a ${b} c{{d}}") == [
        Segment("a ", 0, is_expression=False),
        Segment("b", 4, is_expression=True),
        Segment(" c", 6, is_expression=False),
        Segment("d", 10, is_expression=True),
    ]
    assert segments("") == []
    assert segments("plain $ { } \\") == [Segment("plain $ { } \\", 0, is_expression=False)]


def test_an_escaped_opening_is_text_without_its_backslash() -> None:
    assert segments("\\${a} ${b} \\{{c}}") == [
        Segment("${a} ", 0, is_expression=False),
        Segment("b", 8, is_expression=True),
        Segment(" {{c}}", 10, is_expression=False),
    ]


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("${a}", True),
        ("{{a", True),
        ("\\${a}", False),
        ("\\${a} {{b}}", True),
        ("$a {b}", False),
        ("", False),
    ],
)
def test_only_an_opening_that_is_not_escaped_counts(text: str, has: object) -> None:
    assert has_expression(text) is has


@LAW
@given(st.text("ab '\"\\${}", max_size=30))
def test_expressions_stand_where_their_places_say(text: str) -> None:
    with contextlib.suppress(UnclosedError):
        _check(text, segments(text))


def _check(text: str, cut: list[Segment]) -> None:
    for segment in cut:
        if segment.is_expression:
            assert text[segment.start : segment.start + len(segment.content)] == segment.content
            assert scan_close(text, segment.start) == segment.start + len(segment.content)
    assert has_expression(text) is any(segment.is_expression for segment in cut)
