"""Names that are like others."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.text import lookalikes, near
from luthier.text.names import disguised, skeleton

any_text = st.text(st.characters())


class TestNear:
    def test_the_nearest_come_first(self) -> None:
        assert near("git_lgo", ["git_status", "git_log", "git_logs"]) == ("git_log", "git_logs")

    def test_case_does_not_matter_and_the_spelling_is_kept(self) -> None:
        assert near("GIT_LOG", ["Git_Log"]) == ("Git_Log",)
        assert near("log", ["Log", "LOG"]) == ("Log", "LOG")

    def test_there_are_at_most_as_many_as_asked_for(self) -> None:
        assert len(near("aaaa", [f"aaaa{number}" for number in range(9)])) == 3
        assert near("aaaa", ["AAAA", "aaaA", "aaaa"], 1) == ("AAAA",)

    def test_what_is_far_is_not_named(self) -> None:
        assert near("git_log", ["fetch", "time"]) == ()
        assert near("x", []) == ()

    def test_a_huge_name_among_many_is_no_burden(self) -> None:
        assert near("x" * 1_000_000, ("y" * 1_000_000 for _ in range(100_000))) == ()

    @given(any_text.filter(bool), st.lists(any_text.filter(bool), max_size=5))
    def test_a_name_that_is_there_is_its_own_nearest(self, name: str, others: list[str]) -> None:
        assert name in near(name, [*others, name], 10)


class TestLookalikes:
    def test_another_case_another_alphabet_and_other_separators_look_alike(self) -> None:
        for other in ("Send_Mail", "send-mail", "s\u0435nd_mail", "\uff53end_mail", "send.mai1"):
            assert skeleton(other) == skeleton("send_mail")
        assert skeleton("send_mail") != skeleton("sand_mail")

    def test_names_that_look_alike_are_told_within_and_across_servers(self) -> None:
        names = {"a": ("one", "send"), "b": ("two", "Send"), "c": ("one", "s_end"), "d": ("two", "fetch")}
        assert set(lookalikes(names)) == {("a", "b", "looks"), ("a", "c", "looks"), ("b", "c", "looks")}

    def test_the_same_name_on_two_servers_is_told_apart_by_its_server(self) -> None:
        assert list(lookalikes({"a": ("one", "search"), "b": ("two", "search")})) == []

    def test_a_near_miss_is_told_across_servers_only_and_not_of_short_names(self) -> None:
        names = {"a": ("one", "search"), "b": ("two", "serach"), "c": ("one", "searchs"), "d": ("two", "get")}
        assert list(lookalikes(names | {"e": ("one", "set")})) == [("a", "b", "near")]

    @settings(deadline=None)
    @given(st.text("abcde", min_size=6, max_size=9), st.integers(0, 5), st.sampled_from("xyz"))
    def test_one_edit_is_always_a_near_miss(self, name: str, at: int, letter: str) -> None:
        for edited in (
            name[:at] + name[at + 1 :],
            name[:at] + letter + name[at:],
            name[:at] + letter + name[at + 1 :],
        ):
            assert list(lookalikes({"a": ("one", name), "b": ("two", edited)}))

    def test_a_word_that_only_looks_latin_is_found(self) -> None:
        assert disguised("ask p\u0430ypal now") == "p\u0430ypal"
        assert disguised("\u0441\u043e\u0440") == ""
        assert disguised("\u0441\u043e\u0440", whole=True) == "\u0441\u043e\u0440"
        assert disguised("naïve поиск Ωmega 检索", whole=True) == ""
