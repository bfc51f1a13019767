"""References are found, expanded once, and named when they cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import UnresolvedReferenceError
from luthier.secrets import expand, find

ENV = {"HOME": "/root", "EMPTY": "", "TRAP": "${env.HOME}", "_a1": "under"}
PLACE = "luthier.yaml:12:5 (mcpServers.git.env.TOKEN)"

EXPANDED = {
    "no reference": ("plain $HOME {x} $", "plain $HOME {x} $"),
    "env with a dot": ("${env.HOME}", "/root"),
    "env with a colon": ("${env:HOME}", "/root"),
    "bare": ("${HOME}", "/root"),
    "several in one text": ("a${HOME}b${env._a1}c", "a/rootbunderc"),
    "a default is not used when the variable is set": ("${HOME:-x}", "/root"),
    "a default for an unset variable": ("${NOPE:-x y:z}", "x y:z"),
    "a default for an empty variable": ("${EMPTY:-x}", "x"),
    "an empty default": ("[${NOPE:-}]", "[]"),
    "a default behind env": ("${env.NOPE:-x}", "x"),
    "a default that looks like an operator": ("${NOPE:-:-}", ":-"),
    "empty but set": ("[${EMPTY}]", "[]"),
    "escaped": ("$${env.HOME}", "${env.HOME}"),
    "escaped behind a dollar": ("$$${env.HOME}", "$${env.HOME}"),
    "escaped beside a real one": ("$${HOME}${HOME}", "${HOME}/root"),
    "a value that looks like a reference stays as it is": ("${TRAP}", "${env.HOME}"),
    "two parts do not become a reference": ("$${${env._a1}}", "${under}"),
}


@pytest.mark.parametrize(("text", "expected"), EXPANDED.values(), ids=EXPANDED)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, ENV, place=PLACE) == expected


UNRESOLVED = {
    "unset": ("x${env.NOPE}y", "${env.NOPE}", "the environment variable NOPE is not set"),
    "unset bare": ("${NOPE}", "${NOPE}", "the environment variable NOPE is not set"),
    "secret": ("${secret:pat}", "${secret:pat}", "cannot be resolved here"),
    "keyring": ("${keyring:svc/me}", "${keyring:svc/me}", "cannot be resolved here"),
    "file": ("${file:/run/token}", "${file:/run/token}", "cannot be resolved here"),
    "another kind": ("${input:token}", "${input:token}", "is not a reference"),
    "empty": ("${}", "${}", "is not a reference"),
    "a name with a hyphen": ("${my-token}", "${my-token}", "is not a reference"),
    "without an end": ("a ${env.HOME", "${env.HOME", "is not a reference"),
    "nested": ("${NOPE:-${HOME}}", "${NOPE:-${HOME}", "is not a reference"),
    "blanks inside": ("${ HOME }", "${ HOME }", "is not a reference"),
    "the first of two": ("${ONE}${TWO}", "${ONE}", "ONE is not set"),
}


@pytest.mark.parametrize(("text", "reference", "reason"), UNRESOLVED.values(), ids=UNRESOLVED)
def test_what_has_no_value_is_named_with_its_place(text: str, reference: str, reason: str) -> None:
    with pytest.raises(UnresolvedReferenceError) as caught:
        expand(text, ENV, place=PLACE)
    assert caught.value.reference == reference
    assert caught.value.place == PLACE
    assert caught.value.message.startswith(f"{PLACE}: ")
    assert reason in caught.value.message
    assert caught.value.hint


def test_without_a_place_the_message_begins_with_what_is_wrong() -> None:
    with pytest.raises(UnresolvedReferenceError, match=r"^the environment variable NOPE"):
        expand("${NOPE}", {}, place="")


def test_references_are_found_with_their_kind_and_position() -> None:
    found = find("a $${no} ${env.A} ${B:-b} ${file:/x}${oops")
    assert [(one.kind, one.name, one.default, one.text, one.start) for one in found] == [
        ("env", "A", None, "${env.A}", 9),
        ("env", "B", "b", "${B:-b}", 18),
        ("file", "/x", None, "${file:/x}", 26),
        ("unknown", "oops", None, "${oops", 36),
    ]


@settings(deadline=None)
@given(st.text())
def test_text_without_a_dollar_sign_is_never_changed(text: str) -> None:
    plain = text.replace("$", "")
    assert expand(plain, {}, place="") == plain


@settings(deadline=None)
@given(st.text())
def test_a_value_is_taken_over_letter_by_letter(value: str) -> None:
    assert expand("<${env.X}>", {"X": value}, place="") == f"<{value}>"


@settings(deadline=None)
@given(st.text(alphabet="${}:-.envX"))
def test_expanding_either_gives_text_or_names_the_reference(text: str) -> None:
    env = {"X": "0", "n": "1", "e": "2", "v": "3"}
    missing = [one.text for one in find(text) if one.value(env) is None]
    if missing:
        with pytest.raises(UnresolvedReferenceError) as caught:
            expand(text, env, place="here")
        assert caught.value.reference == missing[0]
    else:
        assert expand(text, env, place="here").count("$") <= text.count("$")
