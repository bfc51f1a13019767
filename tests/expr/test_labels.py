"""Every result carries the label of what it was made of, and of nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.expr import Scope, compile_condition, compile_value, parse
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Integrity, Label, Labelled, Source, merge
from luthier.tools import Envelope


def mark(name: str) -> Label:
    """A label that can be told from all others."""
    return Label(Integrity.untrusted, sources=frozenset({Source("s", name)}))


A, B, C, D = map(mark, "abcd")


def envelope(content: Any) -> Envelope:
    return Envelope({"tool": "t", "server": "s", "content": content, "duration": 1.0, "isError": False})


SCOPE = Scope(
    {
        "a": Labelled({"n": 1, "t": "x", "l": [1, 2], "no": None, "zero": 0}, A),
        "b": Labelled({"n": 2, "t": "y", "key": "n"}, B),
        "c": Labelled({"n": 3}, C),
        "plain": Labelled({"n": 4, "l": [1]}),
        "mixed": merge(
            {"x": Labelled(1, A), "y": merge([Labelled(2, B), Labelled({"z": 3}, C)]), "w": Labelled(4)}
        ),
        "odd": Labelled({"a/b": {"~c": 5}}, A, {"/a~1b": B, "/a~1b/~0c": C}),
        "tool": Labelled(
            {"output": envelope({"n": 7, "l": [8]}), "failed": False}, A, {"/output/content/n": B}
        ),
    },
    now=0.0,
)

WHOLE = {
    "1 + 2": TRUSTED,
    "now()": TRUSTED,
    "'text'": TRUSTED,
    "[1, {x: 2}]": TRUSTED,
    "plain.n": TRUSTED,
    "a.n": A,
    "a.missing.deeper": A,
    "a.l[0]": A,
    "a.l.length": A,
    "plain.l[a.zero]": A,
    "a[b.key]": A.join(B),
    "plain[b.key].x": B,
    "a.n + b.n": A.join(B),
    "a.n + 1": A,
    "plain.n - 1": TRUSTED,
    "a.t == b.t": A.join(B),
    "a.n < b.n": A.join(B),
    "!a.n": A,
    "-a.n": A,
    "a.t | uppercase": A,
    "plain.l | join(b.t)": B,
    "len(a.l)": A,
    "join([a.t, b.t])": A.join(B),
    "a.t.includes(b.t)": A.join(B),
    "'${a.t} and ${b.t}'": A.join(B),
    "'${plain.n}'": TRUSTED,
    "map(mixed.y, 'z')": B.join(C),
    # The branch that is not taken does not count; what decided does.
    "a.n ? b.n : c.n": A.join(B),
    "a.no ? b.n : c.n": A.join(C),
    "plain.n ? b.n : c.n": B,
    "a.n > 0 && b.n": A.join(B),
    "a.no && b.n": A,
    "a.n || b.n": A,
    "a.no || b.n": A.join(B),
    "a.n ?? b.n": A,
    "a.zero ?? b.n": A,
    "a.no ?? b.n": A.join(B),
    "a.no ?? b.missing ?? c.n": A.join(B).join(C),
    "a.no | default(b.n)": A.join(B),
    "a.n | default(b.n)": A,
    "default(a.no, b.n)": A.join(B),
    "default(a.n, b.n)": A,
    "(a.n ? plain.n : c.n) + b.n": A.join(B),
    "a.no ? b.n : plain.n > 3 ? 'x' : c.n": A,
    # A member has the label of the nearest pointer.
    "mixed.x": A,
    "mixed.w": TRUSTED,
    "mixed.missing": TRUSTED,
    "mixed.y[0]": B,
    "mixed.y[1].z": C,
    "mixed.y.length": TRUSTED,
    "mixed.y[plain.zero]": TRUSTED,
    "mixed": A.join(B).join(C),
    "mixed.y": B.join(C),
    "json(mixed)": A.join(B).join(C),
    "mixed == mixed.x": A.join(B).join(C),
    "mixed ? 1 : 2": A.join(B).join(C),
    "(mixed || 1).w": TRUSTED,
    "odd.missing": A,
    "odd['a/b']": B.join(C),
    "odd['a/b'].x": B,
    "odd['a/b']['~c']": C,
    "tool.failed": A,
    "tool.output.isError": A,
    "tool.output.n": B,
    "tool.output.content.n": B,
    "tool.output.l[0]": A,
    "tool.output": A.join(B),
}


@pytest.mark.parametrize(("source", "label"), WHOLE.items(), ids=list(WHOLE))
def test_a_result_has_the_label_of_what_was_evaluated(source: str, label: Label) -> None:
    assert parse(source).evaluate(SCOPE).whole == label
    assert compile_value(f"${{{source}}}").evaluate(SCOPE).whole == label
    assert compile_condition(source).evaluate(SCOPE).whole == label


def test_text_joins_the_labels_of_all_its_expressions() -> None:
    found = compile_value("a ${a.t} b ${b.t} {{plain.n}}").evaluate(SCOPE)
    assert found == Labelled("a x b y 4", A.join(B))
    assert compile_value("just text").evaluate(SCOPE) == Labelled("just text", TRUSTED)


@pytest.mark.parametrize("written", ["{x: a.n, y: [b.n, 1], z: {w: c.n}}", None])
def test_lists_and_objects_keep_a_label_for_each_leaf(written: str | None) -> None:
    value = f"${{ {written} }}" if written else {"x": "${a.n}", "y": ["${b.n}", 1], "z": {"w": "${c.n}"}}
    found = compile_value(value).evaluate(SCOPE)
    assert found.value == {"x": 1, "y": [2, 1], "z": {"w": 3}}
    assert found.label == TRUSTED
    assert found.parts == {"/x": A, "/y/0": B, "/z/w": C}
    assert found.at("/y/1") == TRUSTED


def test_a_condition_taints_every_leaf_of_what_it_chose() -> None:
    found = parse("c.n ? {x: a.n, y: 1} : 2").evaluate(SCOPE)
    assert found.at("/x") == A.join(C)
    assert found.at("/y") == C
    assert found.label == C


def test_a_calculated_key_taints_every_leaf_of_what_it_found() -> None:
    found = parse("({n: mixed})[b.key]").evaluate(SCOPE)
    assert found.at("/x") == A.join(B)
    assert found.at("/w") == B


def test_what_a_choice_yields_keeps_its_own_leaves() -> None:
    for source in ("mixed || 1", "mixed ?? 1", "mixed | default(1)", "plain && mixed"):
        found = parse(source).evaluate(SCOPE)
        assert found.at("/x") == A, source
        assert found.at("/w") == TRUSTED, source


def test_environment_variables_stay_secret_and_trusted() -> None:
    scope = Scope({"env": Labelled({"TOKEN": "t"}, SECRET), "u": Labelled("x", UNTRUSTED)}, now=0.0)
    assert compile_value("Bearer ${env.TOKEN}").evaluate(scope) == Labelled("Bearer t", SECRET)
    both = compile_value("${env.TOKEN}${u}").evaluate(scope).label
    assert both == SECRET.join(UNTRUSTED)
