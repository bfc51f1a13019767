"""Variables of hosts: what each becomes, and that nothing becomes a reference that was none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.secrets import expand, find
from luthier.spec.hosts.variables import Question, Surroundings, VariableFault, rewritten

AROUND = Surroundings(
    Path("/w/demo"),
    {
        "token": Question(secret=True, default="never written"),
        "the region": Question(default="eu"),
        "odd": Question(default="a}b"),
        "ref": Question(default="${X"),
    },
)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${X}", "${X}"),
        ("${env:X}", "${X}"),
        ("${env.X}", "${X}"),
        ("${X:-a b}", "${X:-a b}"),
        ("a${X}b${Y:-}c", "a${X}b${Y:-}c"),
        ("${userHome}/x", "${HOME}/x"),
        ("${workspaceFolder}/a", "/w/demo/a"),
        ("${workspaceRoot}${/}a", "/w/demo/a"),
        ("${workspaceFolderBasename}${pathSeparator}", "demo/"),
        ("${input:token}", "${INPUT_TOKEN}"),
        ("${input:the region}", "${INPUT_THE_REGION:-eu}"),
        ("${input:odd}", "${INPUT_ODD}"),
        ("${input:ref}", "${INPUT_REF}"),
        ("$X costs 5$", "$X costs 5$"),
        ("${open", "$${open"),
        ("{curly}", "{curly}"),
    ],
)
def test_each_variable_is_written_as_ours(written: str, becomes: str) -> None:
    assert rewritten(written, AROUND) == becomes


def test_a_bare_name_is_a_variable_only_where_the_host_says_so() -> None:
    bare = Surroundings(bare=True)
    assert rewritten("Bearer $TOKEN, ${X} $5", bare) == "Bearer ${TOKEN}, ${X} $5"


@pytest.mark.parametrize(
    "written",
    [
        *(
            "${command:x}",
            "${config:a.b}",
            "${file}x y",
            "${lineNumber }",
            "${input:none}",
            "${workspaceFolder:b}",
        ),
        *("${}", "${a-b}", "${secret:x}", "${file:/etc/passwd}", "${keyring:a/b}", "$${X}", "a$${userHome}"),
    ],
)
def test_what_only_the_host_knows_is_refused(written: str) -> None:
    with pytest.raises(VariableFault):
        rewritten(written, AROUND)


@given(
    st.lists(
        st.sampled_from(["${", "$", "{", "}", "X", ":-", "env:", "userHome", "${X}", "${Y:-d}", "secret:"])
    )
)
def test_a_text_holds_the_references_that_it_held_and_no_other(pieces: list[str]) -> None:
    written = "".join(pieces)
    try:
        text = rewritten(written, AROUND)
    except VariableFault:
        return
    assert {reference.kind for reference in find(text)} <= {"env"}
    names = {"X": "<x>", "Y": "<y>", "HOME": "<home>", "userHome": "no", "XX": "<xx>"}
    env = {name: names.get(name, f"<{name}>") for name in (reference.name for reference in find(text))}
    expand(text, env, place="")
