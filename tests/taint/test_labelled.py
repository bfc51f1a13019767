"""The laws of labelled values: each place keeps the label it was made with, whatever way one comes to it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.taint import (
    SECRET,
    TRUSTED,
    UNTRUSTED,
    Label,
    Labelled,
    Source,
    escape_pointer,
    gathered,
    join,
    label_of,
    merge,
)
from tests.taint.made import Tree, containers, labels, trees

GIT = Label(sources=frozenset({Source("git", "log")}))


def members_of(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def strewn(labelled: Labelled[Any]) -> Any:
    """The value with a labelled one in each place, as somebody may hand it in."""
    inner = labelled.value
    if isinstance(inner, dict):
        inner = {key: strewn(labelled.member(key, item)) for key, item in inner.items()}
    elif isinstance(inner, list):
        inner = [strewn(labelled.member(index, item)) for index, item in enumerate(inner)]
    return Labelled(inner, labelled.at(""))


@dataclass
class Card:
    name: str
    number: Any


class TestGathered:
    @given(trees)
    def test_labels_that_stand_in_a_value_are_found_at_their_places(self, tree: Tree) -> None:
        found = gathered(strewn(tree.made))
        assert found.value == tree.made.value
        for pointer, label in tree.model.items():
            assert label <= found.at(pointer)
        assert found.whole == tree.made.whole

    @given(trees, trees)
    def test_the_label_around_and_the_one_within_both_hold(self, tree: Tree, other: Tree) -> None:
        both = gathered(Labelled(strewn(tree.made), other.made.label, other.made.parts))
        for pointer in (*tree.model, *other.model):
            assert both.at(pointer) == gathered(strewn(tree.made)).at(pointer).join(other.made.at(pointer))

    @given(trees)
    def test_what_holds_no_label_is_trusted_and_shares_nothing_that_changes(self, tree: Tree) -> None:
        value = tree.made.value
        found = gathered(value)
        assert found == Labelled(value)
        if isinstance(value, (dict, list)):
            assert found.value is not value

    def test_objects_with_fields_are_looked_into(self) -> None:
        found = gathered([Card("a", Labelled(7, GIT)), GIT.integrity, Card])
        assert found.value == [{"name": "a", "number": 7}, GIT.integrity, Card]
        assert found.parts == {"/0/number": GIT}

    def test_structs_are_looked_into_and_what_has_no_fields_stays_as_it_is(self) -> None:
        assert gathered([Source("git", cast("Any", Labelled("log", GIT)))]).parts == {"/0/tool": GIT}
        for thing in (object(), Source):
            assert gathered([thing]) == Labelled([thing])

    def test_objects_of_attrs_are_looked_into(self) -> None:
        class Made:
            __attrs_attrs__ = (SimpleNamespace(name="number"),)
            number = Labelled(7, GIT)

        assert gathered([Made()]).parts == {"/0/number": GIT}

    def test_what_holds_itself_fails(self) -> None:
        value: list[Any] = []
        value.append(value)
        with pytest.raises(RecursionError):
            gathered(value)


class TestMerge:
    @given(trees)
    def test_every_place_has_the_label_it_was_made_with(self, tree: Tree) -> None:
        assert {pointer: tree.made.at(pointer) for pointer in tree.model} == tree.model

    @given(trees)
    def test_the_whole_is_the_join_of_all_places(self, tree: Tree) -> None:
        assert tree.made.whole == join(tree.model.values())

    @given(containers)
    def test_the_value_is_made_of_the_members_values(self, tree: Tree) -> None:
        value = tree.made.value
        assert merge({"k": tree.made}).value == {"k": value}
        assert merge([tree.made]).value == [value]

    @given(trees, labels)
    def test_a_member_comes_back_with_all_its_labels(self, tree: Tree, label: Label) -> None:
        for key in ("a/b~c", "", "0"):
            again = merge({key: tree.made, "other": Labelled(1, SECRET)}, label).member(key, tree.made.value)
            assert {pointer: again.at(pointer) for pointer in tree.model} == tree.model
            assert again.whole == tree.made.whole

    def test_nothing_makes_an_empty_container_with_the_given_label(self) -> None:
        assert merge({}, UNTRUSTED) == Labelled({}, UNTRUSTED)
        assert merge([]) == Labelled([])

    def test_members_of_the_container_s_own_label_are_not_written_down(self) -> None:
        assert merge({"a": Labelled(1, GIT), "b": Labelled(2)}, GIT).parts == {"/b": TRUSTED}


class TestMember:
    @given(trees)
    def test_a_place_in_a_member_has_the_label_of_the_joined_pointer(self, tree: Tree) -> None:
        for key, value in members_of(tree.made.value):
            prefix = "/" + escape_pointer(str(key))
            member = tree.made.member(key, value)
            assert member.value == value
            for pointer in tree.model:
                if pointer == prefix or pointer.startswith(prefix + "/"):
                    assert member.at(pointer[len(prefix) :]) == tree.made.at(pointer)

    @given(st.lists(trees), labels)
    def test_the_members_of_a_list_are_those_that_one_gets_one_by_one(
        self, trees: list[Tree], label: Label
    ) -> None:
        value = merge([tree.made for tree in trees], label)
        assert value.members() == [value.member(index, of) for index, of in enumerate(value.value)]
        root = Labelled(value.value, label, {**value.parts, "": SECRET})
        assert root.members() == [root.member(index, of) for index, of in enumerate(value.value)]

    @given(trees)
    def test_a_member_is_never_worse_than_the_whole(self, tree: Tree) -> None:
        for key, value in members_of(tree.made.value):
            assert tree.made.member(key, value).whole <= tree.made.whole

    @given(trees)
    def test_a_way_of_many_steps_is_one_pointer(self, tree: Tree) -> None:
        def walk(labelled: Labelled[Any], pointer: str) -> None:
            assert labelled.label == tree.made.at(pointer)
            for key, value in members_of(labelled.value):
                walk(labelled.member(key, value), f"{pointer}/{escape_pointer(str(key))}")

        walk(tree.made, "")

    def test_a_key_that_begins_like_another_takes_nothing_of_it(self) -> None:
        value = merge({"a": Labelled(1), "ab": merge({"c": Labelled(2, SECRET)})})
        assert value.member("a", 1).whole == TRUSTED
        assert value.member("ab", {"c": 2}).at("/c") == SECRET

    def test_a_key_with_a_slash_is_no_way_of_two_steps(self) -> None:
        value = merge({"a/b": Labelled(1, SECRET), "a": merge({"b": Labelled(2)})})
        assert value.member("a", {"b": 2}).member("b", 2).whole == TRUSTED
        assert value.member("a/b", 1).whole == SECRET

    def test_a_member_without_a_label_of_its_own_takes_the_nearest_above(self) -> None:
        value = Labelled({"a": {"b": {"c": 1}}}, TRUSTED, {"/a": UNTRUSTED})
        assert value.at("/a/b/c") == UNTRUSTED
        assert value.member("a", {}).member("b", {}).member("c", 1).label == UNTRUSTED
        assert value.at("/z") == TRUSTED
        assert Labelled({}, TRUSTED, {"": SECRET}).at("/z") == SECRET


class TestJoined:
    @given(trees, labels)
    def test_no_place_is_better_than_the_label(self, tree: Tree, label: Label) -> None:
        joined = tree.made.joined(label)
        assert joined.value == tree.made.value
        assert {pointer: joined.at(pointer) for pointer in tree.model} == {
            pointer: own.join(label) for pointer, own in tree.model.items()
        }
        assert joined.whole == tree.made.whole.join(label)

    @given(trees)
    def test_joining_trusted_changes_nothing(self, tree: Tree) -> None:
        assert tree.made.joined(TRUSTED) is tree.made
        assert tree.made.joined(Label()) == tree.made


class TestLabelOf:
    @given(trees)
    def test_a_labelled_value_gives_its_whole_label(self, tree: Tree) -> None:
        assert label_of(tree.made) == tree.made.whole

    def test_anything_else_is_a_literal(self) -> None:
        assert label_of({"a": 1}) == TRUSTED


@pytest.mark.parametrize(
    ("token", "escaped"), [("plain", "plain"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("~1", "~01"), ("", "")]
)
def test_pointer_tokens_are_escaped_as_rfc_6901_says(token: str, escaped: str) -> None:
    assert escape_pointer(token) == escaped


def test_labelled_values_share_no_parts_by_default() -> None:
    one: Labelled[int] = Labelled(1)
    one.parts["/a"] = SECRET
    assert Labelled(2).parts == {}
