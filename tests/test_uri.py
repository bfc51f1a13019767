"""Addresses of tools: reading undoes printing for any name, order is total, patterns match the print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.uri import SCHEMES, ToolUri

names = st.text(st.characters(), min_size=1)  # lone surrogates too
servers = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
uris = st.one_of(
    st.builds(ToolUri.mcp, servers, names),
    st.builds(ToolUri.builtin, names),
    st.builds(ToolUri.custom, names),
)


class TestReadingAndPrinting:
    @given(uris)
    def test_a_printed_address_is_read_back_as_itself(self, uri: ToolUri) -> None:
        assert ToolUri.parse(str(uri)) == uri

    @given(uris)
    def test_a_printed_address_is_plain_text_without_spaces_controls_or_marks_of_another_part(
        self, uri: ToolUri
    ) -> None:
        printed = str(uri)
        assert printed.isascii()
        assert printed.isprintable()
        assert not set(printed) & set(' ?#<>"\\[]{}|^`')

    @given(uris, uris)
    def test_different_addresses_are_printed_differently(self, one: ToolUri, other: ToolUri) -> None:
        assert (str(one) == str(other)) == (one == other)

    @pytest.mark.parametrize(
        ("text", "uri"),
        [
            ("mcp://git/git_log", ToolUri.mcp("git", "git_log")),
            ("mcp://a-b_C/c.d/e", ToolUri.mcp("a-b_C", "c.d/e")),
            ("mcp://git/get%20log", ToolUri.mcp("git", "get log")),
            ("mcp://git//", ToolUri.mcp("git", "/")),
            ("builtin://http", ToolUri.builtin("http")),
            ("builtin://storage/kv", ToolUri.builtin("storage/kv")),
            ("custom://add", ToolUri.custom("add")),
            ("custom://a://b", ToolUri.custom("a://b")),
        ],
    )
    def test_an_address_names_its_parts(self, text: str, uri: ToolUri) -> None:
        assert ToolUri.parse(text) == uri

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("git_log", "is not a tool address: write mcp://server/tool"),
            ("", "is not a tool address"),
            ("http://x/y", "is not a tool address"),
            ("MCP://git/log", "is not a tool address"),
            ("mcp:/git/log", "is not a tool address"),
            ("mcp://git", "names no tool: write mcp://git/tool"),
            ("mcp://git/", "names no tool"),
            ("mcp:///log", "is not a server id"),
            ("mcp://a b/log", "is not a server id"),
            ("mcp://gït/log", "is not a server id"),
            (f"mcp://{'a' * 65}/log", "at most 64"),
            ("builtin://", "names no tool: write builtin://name"),
            ("custom://", "names no tool"),
            ("mcp://git/%FF", "percent-encoding that is not UTF-8"),
            ("custom://%C3", "percent-encoding that is not UTF-8"),
        ],
    )
    def test_what_is_no_address_is_refused_with_a_reason(self, text: str, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            ToolUri.parse(text)


class TestOrder:
    @given(st.lists(uris))
    def test_goes_by_scheme_then_server_then_name(self, some: list[ToolUri]) -> None:
        assert sorted(some) == sorted(some, key=lambda uri: (uri.scheme, uri.server, uri.name))

    @given(uris, uris)
    def test_agrees_with_equality_and_hash(self, one: ToolUri, other: ToolUri) -> None:
        assert (one <= other <= one) == (one == other)
        if one == other:
            assert hash(one) == hash(other)


class TestPatterns:
    @given(uris)
    def test_a_star_covers_everything(self, uri: ToolUri) -> None:
        assert uri.matches("*")
        assert uri.matches(f"{uri.scheme}://*")

    @given(uris)
    def test_a_scheme_covers_no_other_scheme(self, uri: ToolUri) -> None:
        for scheme in SCHEMES:
            assert uri.matches(f"{scheme}://*") == (scheme == uri.scheme)

    @given(servers, names, servers)
    def test_a_server_covers_its_own_tools_only(self, server: str, name: str, other: str) -> None:
        assert ToolUri.mcp(server, name).matches(f"mcp://{server}/*")
        assert ToolUri.mcp(other, name).matches(f"mcp://{server}/*") == (other == server)

    @pytest.mark.parametrize(
        ("pattern", "text", "covered"),
        [
            ("mcp://git/git_log", "mcp://git/git_log", True),
            ("mcp://git/git_log", "mcp://git/git_log2", False),
            ("mcp://git/git_*", "mcp://git/git_log", True),
            ("mcp://git/*", "mcp://git/a/b", True),
            ("mcp://*/read*", "mcp://files/read_file", True),
            ("mcp://*/read*", "mcp://files/write_file", False),
            ("mcp://git/git_l?g", "mcp://git/git_log", True),
            ("mcp://git/git_[ls]*", "mcp://git/git_status", True),
            ("mcp://git/GIT_LOG", "mcp://git/git_log", False),
            ("mcp://git/a%20b", "mcp://git/a%20b", True),
            ("builtin://storage/*", "builtin://storage/kv", True),
            ("git/*", "mcp://git/git_log", False),
            ("mcp://git/lösche", "mcp://git/l%C3%B6sche", True),
            ("mcp://git/l%C3%B6sche", "mcp://git/lösche", True),
            ("mcp://git/l?sche", "mcp://git/lösche", True),
            ("mcp://git/send all", "mcp://git/send%20all", True),
            ("mcp://git/send *", "mcp://git/send%20all", True),
            ("mcp://git/a[b]", "mcp://git/a[b]", True),
            ("custom://a%b", "custom://a%25b", True),
            ("", "mcp://git/git_log", False),
        ],
    )
    def test_cases(self, pattern: str, text: str, *, covered: bool) -> None:
        assert ToolUri.parse(text).matches(pattern) is covered

    @given(uris)
    def test_its_name_as_it_is_covers_a_tool_whatever_stands_in_it(self, uri: ToolUri) -> None:
        assert uri.matches(f"{uri.scheme}://{uri.server}{'/' if uri.server else ''}{uri.name}")

    def test_a_name_cannot_pass_for_a_line_of_its_own(self) -> None:
        assert not ToolUri.mcp("evil", "x\nmcp://git/log").matches("mcp://git/*")
