"""Names for models: allowed, told apart, the same for the same tool, and looked up on the way back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import NotFoundError
from luthier.tools.naming import NameTable, model_name
from luthier.uri import ToolUri

names = st.text(st.characters(), min_size=1, max_size=80) | st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
servers = st.from_regex(r"[a-z_-]{1,6}|[a-zA-Z0-9_-]{1,64}", fullmatch=True)
uris = st.one_of(
    st.builds(ToolUri.mcp, servers, names),
    st.builds(ToolUri.builtin, names),
    st.builds(ToolUri.custom, names),
)


class TestModelName:
    @pytest.mark.parametrize(
        ("uri", "name"),
        [
            ("mcp://git/git_log", "git__git_log"),
            ("mcp://server-everything/get-sum", "server-everything__get-sum"),
            ("mcp://a/b__c", "a__b__c"),
            ("builtin://save_to_memory", "save_to_memory"),
            ("custom://add", "add"),
            (f"mcp://{'s' * 30}/{'t' * 32}", f"{'s' * 30}__{'t' * 32}"),
        ],
    )
    def test_is_plain_where_nothing_is_lost(self, uri: str, name: str) -> None:
        assert model_name(ToolUri.parse(uri)) == name

    @pytest.mark.parametrize(
        ("uri", "readable"),
        [
            ("mcp://api/catalog.get-entity", "api__catalog_get-entity"),
            ("mcp://api/a/b", "api__a_b"),
            ("mcp://api/%C3%BCber", "api___ber"),
            (f"mcp://{'s' * 31}/{'t' * 32}", f"{'s' * 31}__{'t' * 22}"),
            ("builtin://storage/kv", "storage_kv"),
            ("mcp://a__b/c", "a__b__c"),
            ("mcp://a_/b", "a___b"),
            ("custom://a__b", "a__b"),
        ],
    )
    def test_ends_in_a_hash_where_something_is_lost(self, uri: str, readable: str) -> None:
        """Field reports 83 and 85: dots, slashes, long names, and separators inside names."""
        assert re.fullmatch(re.escape(readable) + "_[0-9a-f]{8}", model_name(ToolUri.parse(uri)))

    @given(uris)
    def test_is_allowed_by_every_provider(self, uri: ToolUri) -> None:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", model_name(uri))

    @given(uris, uris)
    def test_of_different_tools_of_servers_is_different(self, one: ToolUri, other: ToolUri) -> None:
        if one.scheme == other.scheme == "mcp":
            assert (model_name(one) == model_name(other)) == (one == other)

    def test_is_the_same_in_every_version(self) -> None:
        """Prompts, records and approvals hold these names."""
        assert model_name(ToolUri.mcp("api", "catalog.get-entity")) == "api__catalog_get-entity_d4f88635"


class TestNameTable:
    @given(st.lists(uris))
    def test_every_name_leads_back_to_its_tool(self, some: list[ToolUri]) -> None:
        table = NameTable(some)
        assert len(table.names) == len(set(some))
        for uri in some:
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", table.name_of(uri))
            assert table.uri_of(table.name_of(uri)) == uri

    @given(st.lists(uris), st.randoms())
    def test_the_order_of_the_tools_does_not_matter(self, some: list[ToolUri], random: object) -> None:
        shuffled = sorted(some, key=lambda uri: hash((uri, id(random))))
        assert NameTable(shuffled).names == NameTable(some).names

    @given(st.lists(st.builds(ToolUri.mcp, servers, names)), st.lists(st.builds(ToolUri.mcp, servers, names)))
    def test_a_tool_keeps_its_name_whatever_stands_beside_it(
        self, some: list[ToolUri], more: list[ToolUri]
    ) -> None:
        table = NameTable(some + more)
        assert [table.name_of(uri) for uri in some] == [model_name(uri) for uri in some]

    def test_names_are_listed_in_the_order_of_their_addresses(self) -> None:
        table = NameTable([ToolUri.mcp("b", "x"), ToolUri.custom("y"), ToolUri.mcp("a", "z")])
        assert table.names == ("y", "a__z", "b__x")

    def test_a_builtin_and_a_custom_tool_of_one_name_are_told_apart(self) -> None:
        one, other = ToolUri.builtin("add"), ToolUri.custom("add")
        table = NameTable([one, other])
        assert {table.uri_of(name) for name in table.names} == {one, other}
        assert table.names == NameTable([other, one]).names
        assert all(re.fullmatch("add_[0-9a-f]{16}", name) for name in table.names)

    def test_a_tool_that_is_called_like_the_hashed_name_of_another_does_not_take_its_place(self) -> None:
        victim = ToolUri.mcp("api", "a.b")
        thief = ToolUri.mcp("api", model_name(victim).removeprefix("api__"))
        assert model_name(thief) == model_name(victim)
        table = NameTable([victim, thief])
        assert len(set(table.names)) == 2
        assert table.uri_of(table.name_of(victim)) == victim
        with pytest.raises(NotFoundError):
            table.uri_of(model_name(victim))

    def test_a_name_is_not_taken_apart(self) -> None:
        table = NameTable([ToolUri.mcp("tavily-mcp", "tavily-search")])
        assert table.uri_of("tavily-mcp__tavily-search") == ToolUri.mcp("tavily-mcp", "tavily-search")
        with pytest.raises(NotFoundError):
            table.uri_of("tavily__mcp-tavily-search")

    def test_an_unknown_name_or_tool_is_not_found_and_near_ones_are_told(self) -> None:
        table = NameTable([ToolUri.mcp("git", "git_log"), ToolUri.mcp("time", "now")])
        with pytest.raises(NotFoundError) as caught:
            table.uri_of("git__git_lgo")
        assert caught.value.near == ("git__git_log",)
        with pytest.raises(NotFoundError) as caught:
            table.name_of(ToolUri.mcp("git", "git_lgo"))
        assert caught.value.near == ("mcp://git/git_log",)
