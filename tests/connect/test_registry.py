"""The registry: found by id, replaced and never edited, with a fingerprint for each configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from luthier.connect import ServerRegistry
from luthier.errors import NotFoundError
from luthier.spec import Project, ServerEntry
from luthier.spec.document import Document
from luthier.spec.origin import Origin
from luthier.taint import TRUSTED, UNTRUSTED

GIT, TIME = ServerEntry(id="git", command="python"), ServerEntry(id="time", command="uvx")


def test_entries_are_found_by_their_id_and_keep_their_order() -> None:
    registry = ServerRegistry([TIME, GIT])
    assert registry.ids == ("time", "git")
    assert list(registry) == [TIME, GIT]
    assert len(registry) == 2
    assert "git" in registry
    assert "gti" not in registry
    assert registry.find("git") is registry.get("git") is GIT
    assert registry.find("gti") is None
    with pytest.raises(NotFoundError) as caught:
        registry.get("gti")
    assert caught.value.near == ("git",)


def test_a_registry_is_made_of_a_project(tmp_path: Path) -> None:
    project = Project(
        root=tmp_path, environment="production", servers={"git": GIT}, allowed_commands=("python",)
    )
    registry = ServerRegistry.of(project)
    assert registry.ids == ("git",)
    assert (registry.environment, registry.allowed_commands, registry.root) == (
        "production",
        ("python",),
        tmp_path,
    )


def test_a_registry_without_a_project_allows_what_a_project_does_by_default() -> None:
    assert ServerRegistry().allowed_commands == Project(root=Path()).allowed_commands


def test_another_entry_makes_another_registry_and_leaves_the_first_as_it_was() -> None:
    first = ServerRegistry([GIT], environment="production", allowed_commands=["python"], root=Path("/srv"))
    second = first.with_entry(TIME)
    third = second.without("git").without("nobody")
    assert (first.ids, second.ids, third.ids) == (("git",), ("git", "time"), ("time",))
    for registry in (second, third):
        assert (registry.environment, registry.allowed_commands, registry.root) == (
            "production",
            ("python",),
            Path("/srv"),
        )


@pytest.mark.parametrize(
    "other",
    [
        ServerEntry(id="git", command="node"),
        ServerEntry(id="git", command="python", args=("x",)),
        ServerEntry(id="git", command="python", env={"A": "1"}),
        ServerEntry(id="git", command="python", trust=TRUSTED),
        ServerEntry(id="git", command="python", tool_timeout=1.0),
        ServerEntry(id="git", command="python", allowed_agents=()),
    ],
)
def test_another_configuration_has_another_fingerprint(other: ServerEntry) -> None:
    assert ServerRegistry([GIT]).fingerprint("git") != ServerRegistry([other]).fingerprint("git")


def test_the_same_configuration_has_the_same_fingerprint_wherever_it_was_written() -> None:
    origin = Origin(Document("luthier.yaml", {}), ("servers", "git"))
    env = {"A": "1", "B": "2"}
    one = ServerEntry(id="git", command="python", env=env, trust=UNTRUSTED)
    other = ServerEntry(id="git", command="python", env=dict(reversed(env.items())), origin=origin)
    assert ServerRegistry([one]).fingerprint("git") == ServerRegistry([other, TIME]).fingerprint("git")
