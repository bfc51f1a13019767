"""The laws of labels: join is the least upper bound of a lattice, and a label survives being written down."""

from __future__ import annotations

from functools import reduce

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Confidentiality, Integrity, Label, Source, join
from tests.taint.made import labels


class TestJoin:
    @given(labels, labels)
    def test_is_commutative(self, a: Label, b: Label) -> None:
        assert a.join(b) == b.join(a)

    @given(labels, labels, labels)
    def test_is_associative(self, a: Label, b: Label, c: Label) -> None:
        assert a.join(b).join(c) == a.join(b.join(c))

    @given(labels)
    def test_is_idempotent(self, a: Label) -> None:
        assert a.join(a) == a
        assert a.join(Label(a.integrity, a.confidentiality, a.sources)) == a

    @given(labels)
    def test_with_trusted_changes_nothing(self, a: Label) -> None:
        assert a.join(TRUSTED) == TRUSTED.join(a) == a
        assert a.join(Label()) == Label().join(a) == a  # an equal label is as neutral as the constant

    @given(labels, labels)
    def test_is_at_least_as_bad_as_both_and_loses_no_source(self, a: Label, b: Label) -> None:
        both = a.join(b)
        assert a <= both
        assert b <= both
        assert both.sources == a.sources | b.sources

    @given(labels, labels, labels)
    def test_is_no_worse_than_any_that_is_as_bad_as_both(self, a: Label, b: Label, c: Label) -> None:
        bound = a.join(b).join(c)
        assert a.join(b) <= bound

    @given(labels, labels, labels)
    def test_is_monotone(self, a: Label, b: Label, c: Label) -> None:
        assert a.join(c) <= a.join(b).join(c)

    @given(labels, labels)
    def test_tells_the_order(self, a: Label, b: Label) -> None:
        assert (a <= b) == (a.join(b) == b)

    @given(st.lists(labels))
    def test_of_many_is_that_of_one_after_the_other(self, many: list[Label]) -> None:
        assert join(many) == reduce(Label.join, many, TRUSTED)
        assert join(iter(many)) == join(reversed(many))

    def test_of_none_is_trusted(self) -> None:
        assert join([]) == TRUSTED


class TestOrder:
    @given(labels, labels, labels)
    def test_is_a_partial_order(self, a: Label, b: Label, c: Label) -> None:
        assert a <= a  # noqa: PLR0124  (reflexivity)
        assert not (a <= b <= a) or a == b
        assert not (a <= b <= c) or a <= c

    @given(labels, labels)
    def test_reads_the_other_way_round_too(self, a: Label, b: Label) -> None:
        assert (a >= b) == (b <= a)

    def test_leaves_labels_of_different_sources_apart(self) -> None:
        one, other = (Label(sources=frozenset({Source(name, "t")})) for name in ("a", "b"))
        assert not one <= other
        assert not other <= one

    def test_is_not_one_of_integrity_alone(self) -> None:
        assert not UNTRUSTED <= SECRET
        assert not SECRET <= UNTRUSTED
        assert UNTRUSTED.join(SECRET) == Label(Integrity.untrusted, Confidentiality.secret)


class TestJson:
    @given(labels)
    def test_a_label_is_read_back_as_it_was_written(self, label: Label) -> None:
        assert Label.from_json(msgspec.json.decode(msgspec.json.encode(label.to_json()))) == label

    @given(labels)
    def test_equal_labels_are_written_alike(self, label: Label) -> None:
        again = Label(label.integrity, label.confidentiality, frozenset(sorted(label.sources, reverse=True)))
        assert msgspec.json.encode(again.to_json()) == msgspec.json.encode(label.to_json())

    def test_it_is_written_in_plain_words(self) -> None:
        label = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("git", "log", "c1")}))
        assert label.to_json() == {
            "integrity": "untrusted",
            "confidentiality": "private",
            "sources": [{"server": "git", "tool": "log", "call_id": "c1"}],
        }

    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"integrity": "trusted", "confidentiality": "public"},
            {"integrity": "quite", "confidentiality": "public", "sources": []},
            {"integrity": "trusted", "confidentiality": "cosmic", "sources": []},
            {"integrity": None, "confidentiality": "public", "sources": []},
            {"integrity": "trusted", "confidentiality": "public", "sources": [{"server": 1, "tool": "t"}]},
            {"integrity": "trusted", "confidentiality": "public", "sources": "all"},
        ],
    )
    def test_what_is_no_label_is_refused(self, data: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="not a label"):
            Label.from_json(data)


def test_a_label_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        UNTRUSTED.integrity = Integrity.trusted  # type: ignore[misc]
