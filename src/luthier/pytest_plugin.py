"""The fixtures that pytest finds by itself. Loading this costs next to nothing: each makes what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from luthier.testing import FakeClock, Mocks, ScriptedModel, TestConductor


@pytest.fixture
def luthier_mocks() -> Mocks:
    """The mocks of `luthier_project`: `luthier_mocks["server:tool"] = answer`."""
    from luthier.testing import Mocks

    return Mocks()


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that is turned by hand."""
    from luthier.testing import FakeClock

    return FakeClock()


@pytest.fixture
def scripted_model() -> ScriptedModel:
    """A model that answers what `scripted_model.then(…)` says."""
    from luthier.testing import ScriptedModel

    return ScriptedModel([])


@pytest.fixture
def luthier_project(request: pytest.FixtureRequest, luthier_mocks: Mocks) -> TestConductor:
    """A strict conductor of the project that the test's file lies in."""
    from luthier.spec import find_project
    from luthier.testing import TestConductor

    path = find_project(request.path.parent)
    if path is None:
        message = f"{request.path} lies in no project: there is no luthier.yaml beside it or above it."
        raise pytest.UsageError(message)
    asked: dict[str, Any] = {
        part: request.getfixturevalue(fixture)
        for part, fixture in (("clock", "fake_clock"), ("models", "scripted_model"))
        if fixture in request.fixturenames
    }
    return TestConductor(path, mocks=luthier_mocks, strict=True, **asked)
