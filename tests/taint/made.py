"""Labels and labelled values for property tests, with a plain model of what they must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from luthier.taint import Confidentiality, Integrity, Label, Labelled, Source, escape_pointer, merge

sources = st.builds(
    Source, st.sampled_from(["git", "mail"]), st.sampled_from(["read", "log"]), st.sampled_from(["1", "2"])
)
labels = st.builds(
    Label, st.sampled_from(Integrity), st.sampled_from(Confidentiality), st.frozensets(sources, max_size=3)
)
_some = st.sampled_from(
    [
        Label(),
        Label(confidentiality=Confidentiality.secret),
        Label(Integrity.untrusted, Confidentiality.private),
        Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("git", "log", "1")})),
        Label(Integrity.trusted, Confidentiality.private, frozenset({Source("mail", "read")})),
    ]
)
keys = st.one_of(st.sampled_from(["a", "ab", "a/b", "a~b", "~1", "", "0", "1"]), st.text(max_size=2))
leaves = st.sampled_from([None, True, 0, "", "text"])


@dataclass
class Tree:
    """A labelled value made by merging, and the label that each place in it was made with."""

    made: Labelled[Any]
    model: dict[str, Label] = field(default_factory=dict)


@st.composite
def _leaf(draw: st.DrawFn) -> Tree:
    label = draw(_some)
    return Tree(Labelled(draw(leaves), label), {"": label})


@st.composite
def _container(draw: st.DrawFn, inner: st.SearchStrategy[Tree]) -> Tree:
    label = draw(_some)
    members = draw(st.one_of(st.dictionaries(keys, inner, max_size=4), st.lists(inner, max_size=4)))
    model = {"": label}
    for key, member in enumerate(members) if isinstance(members, list) else members.items():
        pointer = "/" + escape_pointer(str(key))
        model |= {pointer + below: at for below, at in member.model.items()}
    if isinstance(members, list):
        return Tree(merge([member.made for member in members], label), model)
    return Tree(merge({key: member.made for key, member in members.items()}, label), model)


trees = st.recursive(_leaf(), _container, max_leaves=8)
containers = _container(trees)
