"""Who may reach what: principals, lists and environments as a table, and tools as patterns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.connect import ServerRegistry
from luthier.errors import NotFoundError
from luthier.govern.access import Access, Denial, is_told
from luthier.spec import ServerEntry, ToolFilter
from luthier.uri import ToolUri

OPERATOR, ADA, BOB = ("operator",), ("operator", "ada"), ("operator", "bob")
ENSEMBLE, NESTED = ("operator", "ensemble:digest"), ("operator", "ensemble:digest", "ensemble:part")
AGENT_IN_ENSEMBLE = ("operator", "ensemble:digest", "ada")
CLIENT, SERVED = ("client:7",), ("client:7", "ensemble:digest")
CHAINS = [OPERATOR, ADA, BOB, ENSEMBLE, NESTED, AGENT_IN_ENSEMBLE, CLIENT, SERVED]

# allowed_agents → chains that may, in development and in production
LISTS: list[tuple[tuple[str, ...] | None, list[tuple[str, ...]], list[tuple[str, ...]]]] = [
    (None, CHAINS, CHAINS),
    ((), [], []),
    (("ada",), [OPERATOR, ADA], []),
    (("ada", "operator"), [OPERATOR, ADA], [OPERATOR, ADA]),
    (("operator",), [OPERATOR], [OPERATOR]),
    (("ensemble:digest",), [OPERATOR, ENSEMBLE], []),
    (("ensemble:part",), [OPERATOR], []),
    (("ensemble:digest", "ensemble:part"), [OPERATOR, ENSEMBLE, NESTED], []),
    (("ensemble:digest", "ada"), [OPERATOR, ADA, ENSEMBLE, AGENT_IN_ENSEMBLE], []),
    (
        ("operator", "ensemble:digest", "ada"),
        [OPERATOR, ADA, ENSEMBLE, AGENT_IN_ENSEMBLE],
        [OPERATOR, ADA, ENSEMBLE, AGENT_IN_ENSEMBLE],
    ),
    (("client:7", "ensemble:digest"), [OPERATOR, ENSEMBLE, CLIENT, SERVED], [CLIENT, SERVED]),
    (("client:*", "*", "ensemble:*", "ADA", "ada "), [OPERATOR], []),
]
CELLS = [
    (allowed, chain, environment, chain in chains)
    for allowed, development, production in LISTS
    for environment, chains in (("development", development), ("production", production))
    for chain in CHAINS
]


def access(environment: str = "development", **fields: Any) -> Access:
    entries = [ServerEntry(id="git", command="python", **fields), ServerEntry(id="time", command="python")]
    return Access(ServerRegistry(entries, environment=environment))


@pytest.mark.parametrize(("allowed", "chain", "environment", "may"), CELLS)
def test_every_principal_of_the_chain_must_be_listed(
    allowed: tuple[str, ...] | None, chain: tuple[str, ...], environment: str, *, may: bool
) -> None:
    gate = access(environment, allowed_agents=allowed)
    denial = gate.denial(ToolUri.mcp("git", "git_log"), chain)
    assert (denial is None) is may
    assert (gate.server_denial("git", chain) is None) is may
    assert ("git" in gate.servers(chain)) is may
    if denial is not None:
        assert denial.rule == "allowed_agents"
        assert denial.place == "allowed_agents"
        assert any(repr(principal) in denial.reason for principal in chain)
        assert "allowed_agents" in denial.hint
    assert gate.denial(ToolUri.mcp("git", "git_log"), chain) == denial  # thought about once


@given(
    st.lists(st.sampled_from(["operator", "ada", "bob", "ensemble:x", "client:1"]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["operator", "ada", "bob", "ensemble:x", "client:1"]), max_size=5),
    st.sampled_from(["development", "production"]),
)
def test_one_more_caller_never_widens_what_a_chain_may_do(
    chain: list[str], allowed: list[str], environment: str
) -> None:
    gate = access(environment, allowed_agents=tuple(allowed))
    for end in range(1, len(chain)):
        if gate.server_denial("git", tuple(chain[:end])) is not None:
            assert gate.server_denial("git", tuple(chain)) is not None


@pytest.mark.parametrize("allowed", [None, (), ("nobody",), ("ada",)])
def test_a_call_that_nobody_makes_reaches_nothing(allowed: tuple[str, ...] | None) -> None:
    gate = access(allowed_agents=allowed)
    assert gate.server_denial("git", ()) is not None
    assert not is_told(())


def test_a_disabled_server_is_nobodys() -> None:
    denial = access(disabled=True).denial(ToolUri.mcp("git", "git_log"), OPERATOR)
    assert denial is not None
    assert denial.rule == "disabled"


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("environment", ["development", "production"])
def test_an_unapproved_server_is_nobodys_and_says_what_the_operator_does(
    chain: tuple[str, ...], environment: str
) -> None:
    gate = access(environment, approved=False)
    for denial in (gate.denial(ToolUri.mcp("git", "git_log"), chain), gate.server_denial("git", chain)):
        assert denial is not None
        assert (denial.kind, denial.rule, denial.place) == ("approval", "approved", "approved")
        assert "luthier servers approve git" in denial.hint
        assert denial.reason == "Server 'git' waits for approval."
    assert gate.servers(chain) == ("time",)


def test_what_is_turned_off_is_so_for_whom_it_is_turned_off() -> None:
    off = Denial("It is turned off.", "kill switch", "", "")

    def is_off(server: str, principals: tuple[str, ...]) -> Denial | None:
        return off if (server, principals) == ("git", ADA) else None

    gate = Access(ServerRegistry([ServerEntry(id="git"), ServerEntry(id="time")]), is_off)
    assert gate.server_denial("git", ADA) is gate.denial(ToolUri.mcp("git", "x"), ADA) is off
    assert gate.server_denial("time", ADA) is gate.server_denial("git", ("bob",)) is None
    assert (gate.servers(ADA), gate.servers(("bob",))) == (("time",), ("git", "time"))


def test_who_may_never_use_a_server_is_not_told_to_approve_it() -> None:
    denial = access(approved=False, allowed_agents=("bob",)).denial(ToolUri.mcp("git", "x"), ADA)
    assert denial is not None
    assert (denial.kind, denial.rule) == ("denied", "allowed_agents")


@pytest.mark.parametrize(
    ("tools", "name", "rule"),
    [
        (ToolFilter(), "git_log", None),
        (ToolFilter(allow=("git_log",)), "git_log", None),
        (ToolFilter(allow=("git_*",)), "git_log", None),
        (ToolFilter(allow=("git_l?g", "x")), "git_log", None),
        (ToolFilter(allow=("git_diff",)), "git_log", "tools.allow"),
        (ToolFilter(allow=("GIT_*",)), "git_log", "tools.allow"),
        (ToolFilter(allow=()), "git_log", "tools.allow"),
        (ToolFilter(deny=("git_push",)), "git_log", None),
        (ToolFilter(deny=("git_push",)), "git_push", "tools.deny"),
        (ToolFilter(deny=("*",)), "git_log", "tools.deny"),
        (ToolFilter(allow=("git_*",), deny=("*_push",)), "git_push", "tools.deny"),
        (ToolFilter(allow=("*",)), "a/b", None),
        (ToolFilter(deny=("constructor",)), "constructor", "tools.deny"),
        (ToolFilter(deny=("a[b]",)), "a[b]", "tools.deny"),
        (ToolFilter(read_only=("git_log",), idempotent=("git_log",)), "git_push", None),
    ],
)
def test_tools_are_allowed_and_denied_by_pattern_and_a_denial_wins(
    tools: ToolFilter, name: str, rule: str | None
) -> None:
    denial = access(tools=tools).denial(ToolUri.mcp("git", name), OPERATOR)
    assert (None if denial is None else denial.rule) == rule
    if denial is not None:
        assert denial.place == rule


def test_a_server_that_may_not_be_used_says_so_before_any_of_its_tools() -> None:
    gate = access(allowed_agents=("bob",), tools=ToolFilter(deny=("*",)))
    denial = gate.denial(ToolUri.mcp("git", "x"), ADA)
    assert denial is not None
    assert denial.rule == "allowed_agents"


def test_an_unknown_server_is_not_found_with_only_such_near_names_as_the_caller_may_see() -> None:
    gate = access(allowed_agents=("bob",))
    for chain, near in ((BOB, ("git",)), (ADA, ())):
        with pytest.raises(NotFoundError) as caught:
            gate.denial(ToolUri.mcp("gti", "x"), chain)
        assert caught.value.near == near
        with pytest.raises(NotFoundError) as caught:
            gate.server_denial("gti", chain)
        assert caught.value.near == near


def test_local_tools_belong_to_whoever_was_given_them() -> None:
    gate = access()
    assert gate.denial(ToolUri.builtin("save_to_memory"), ADA) is None
    assert gate.denial(ToolUri.custom("shout"), CLIENT) is None


def test_decisions_are_kept_within_a_bound() -> None:
    gate = access(tools=ToolFilter(deny=("tool_1",)))
    for number in range(25_000):
        denial = gate.denial(ToolUri.mcp("git", f"tool_{number}"), OPERATOR)
        assert (denial is None) is (number != 1)
    assert len(gate._decided) <= 10_000  # noqa: SLF001  (there is no other way to see it)


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        (OPERATOR, True),
        (ENSEMBLE, True),
        (SERVED, True),
        (ADA, False),
        (AGENT_IN_ENSEMBLE, False),
        (CLIENT, False),
    ],
)
def test_only_the_operator_and_ensembles_are_told_of_what_they_may_not_use(
    chain: tuple[str, ...], *, told: bool
) -> None:
    assert is_told(chain) is told
