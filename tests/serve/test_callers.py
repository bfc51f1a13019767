"""Tokens: only their hashes are kept, several a client, and one that is not known is nobody's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import SpecError, UnresolvedReferenceError
from luthier.serve import Callers, new_token, token_hash
from luthier.serve.caller import Caller
from luthier.serve.offers import offers_of
from luthier.spec import read_ensemble, read_project
from luthier.spec.serve import ROLES

LONG, OTHER = "a" * 40, "b" * 40


def callers(clients: dict[str, Any], trigger: Any = None, **environ: str) -> Callers:
    project = read_project({"serve": {"clients": clients}}, root="/")
    steps = [{"name": "a", "operation": "transform", "config": {"value": 1}}]
    ensemble = read_ensemble({"ensemble": "e", "agents": steps, "trigger": trigger})
    return Callers.of(project, offers_of([ensemble]), environ)


def test_a_client_may_hold_several_tokens_by_reference_and_by_hash() -> None:
    found = callers({"ci": ["${env.A}", token_hash(OTHER)], "desktop": []}, A=LONG)
    assert (found.caller(LONG), found.caller(OTHER), found.names) == (
        Caller(id="ci"),
        Caller(id="ci"),
        ("ci",),
    )
    assert bool(found)


def test_a_client_has_the_roles_that_it_is_given_and_without_them_it_only_runs() -> None:
    boss = {"tokens": "${env.B}", "roles": ["approve"]}
    found = callers({"ci": "${env.A}", "boss": boss, "root": {"token": "${env.C}", "roles": ["admin"]}},
                    A=LONG, B=OTHER, C="c" * 40)  # fmt: skip
    may = {
        name: {role for role in ROLES if (caller := found.caller(token)) and caller.may(role)}
        for name, token in (("ci", LONG), ("boss", OTHER), ("root", "c" * 40))
    }
    assert may == {"ci": {"run"}, "boss": {"approve"}, "root": {"run", "approve", "admin"}}


def test_a_token_of_a_trigger_is_a_client_of_its_own() -> None:
    found = callers({}, {"type": "mcp", "auth": {"secret": "${env.A}"}}, A=LONG)
    assert found.caller(LONG) == Caller(id="trigger/e")


def test_where_nobody_has_a_token_there_are_no_callers() -> None:
    assert not callers({"desktop": []})


@given(st.text())
def test_a_token_that_is_not_known_is_nobodys(token: str) -> None:
    assert callers({"ci": "${env.A}"}, A=LONG).caller(token) is None


def test_the_hash_of_a_token_is_no_token() -> None:
    assert callers({"ci": "${env.A}"}, A=LONG).caller(token_hash(LONG)) is None


def test_a_reference_without_a_value_is_not_taken_as_the_token() -> None:
    with pytest.raises(UnresolvedReferenceError, match=r"serve\.clients\.ci.*A is not set"):
        callers({"ci": "${env.A}"})


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(SpecError, match="fewer than 16"):
        callers({"ci": "${env.A}"}, A="hunter2")


def test_two_clients_with_one_token_are_refused() -> None:
    with pytest.raises(SpecError, match="nobody can tell who calls"):
        callers({"a": "${env.A}", "b": token_hash(LONG)}, A=LONG)


def test_new_tokens_are_long_and_never_the_same() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 43
