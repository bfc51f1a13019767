"""Text made safe to show."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.text import escape, one_line

any_text = st.text(st.characters())


class TestEscape:
    @given(any_text)
    def test_nothing_that_steers_or_hides_is_left(self, text: str) -> None:
        shown = escape(text).replace("\r\n", "").replace("\n", "").replace("\t", "")
        assert not [
            character
            for character in shown
            if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            and character not in "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
            and not "\U000110bd" <= character <= "\U0001d17a"
        ]

    @given(any_text)
    def test_what_is_escaped_once_is_not_escaped_again(self, text: str) -> None:
        assert escape(escape(text)) == escape(text)

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain, with umlauts: äöü, 日本 and 🙂", "plain, with umlauts: äöü, 日本 and 🙂"),
            ("two\nlines\tand a tab", "two\nlines\tand a tab"),
            ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            ("over\rwritten", "over\\x0dwritten"),
            ("from\r\nwindows", "from\r\nwindows"),
            ("\x9b2J", "\\x9b2J"),
            ("\u202egnp.exe", "\\u202egnp.exe"),
            ("zero\u200bwidth", "zero\\u200bwidth"),
            ("line\u2028separator", "line\\u2028separator"),
            ("\ufeffmark", "\\ufeffmark"),
            ("tag \U000e0041", "tag \\U000e0041"),
            ("variation \U000e0100", "variation \\U000e0100"),
            ("half \ud83d", "half \\ud83d"),
            ("\x7f\x00", "\\x7f\\x00"),
        ],
    )
    def test_cases(self, text: str, shown: str) -> None:
        assert escape(text) == shown


class TestOneLine:
    @given(any_text, st.integers(1, 50))
    def test_it_is_one_line_of_at_most_that_length(self, text: str, limit: int) -> None:
        line = one_line(text, limit)
        assert len(line) <= limit
        assert len(line.splitlines()) <= 1

    @given(any_text)
    def test_a_short_text_is_kept_with_its_white_space_folded(self, text: str) -> None:
        if len(escape(text)) <= 200:
            assert one_line(text) == escape(" ".join(text.split()))

    def test_what_was_cut_ends_in_a_mark(self) -> None:
        assert one_line("abcdef", 4) == "abc…"
        assert one_line("  \n " * 10_000 + "x" * 10_000, 4) == "xxx…"

    def test_words_behind_a_wide_gap_are_cut_with_a_mark_too(self) -> None:
        assert one_line("ab" + " " * 100 + "cd", 5) == "ab…"
