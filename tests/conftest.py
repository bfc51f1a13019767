"""What all tests share: asserts that are explained, a place for state, figures printed at the end."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from luthier.redaction import known
from tests.postgres import postgres, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A machine that others use too is no fault of a property. The second profile is for `scripts/mutants`, which
# runs the same few tests in one process over and over.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("shared")

pytest.register_assert_rewrite("tests.faults.bench", "tests.faults.rows")


_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a sentence with a figure that a test found; all of them are printed behind the results."""
    return request.config.stash.setdefault(_FIGURES, []).append


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Where several processes share the tests, each hands its figures to the one that prints.
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = session.config.stash.get(_FIGURES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    told = getattr(node, "workeroutput", {}).get("figures", [])
    node.config.stash.setdefault(_FIGURES, []).extend(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("figures")
    for line in figures:
        terminalreporter.line(line)


@pytest.fixture(scope="session", autouse=True)
def _state_home() -> Iterator[None]:
    # Keys that processes make for themselves must not lie in the home of whoever runs the tests.
    with tempfile.TemporaryDirectory(prefix="luthier-state-") as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = folder
        yield
        os.environ.pop("XDG_STATE_HOME")
        if before is not None:
            os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> None:
    """One process runs them all, and what one calls a secret may be a plain word to the next."""
    known.forget()


@pytest.fixture(scope="session")
def _postgres() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def postgres_url(_postgres: str) -> Iterator[str]:
    """The URL of an empty schema on a real PostgreSQL."""
    with schema(_postgres) as url:
        yield url
