"""Whatever shape a document has, reading it gives a value or faults, and no other exception."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.spec import check_ensemble, read_project
from luthier.spec.check_project import check_project
from luthier.spec.document import Document
from luthier.spec.read import examine
from luthier.spec.read_project import examine_project

if TYPE_CHECKING:
    from luthier.errors import Fault

WORDS = re.findall(
    r"\S+",
    """
    ensemble name inputs input outputs output agents steps flow operation tools code transform ensemble
    config mcp tool condition when depends_on retry timeout cache state value merge parse sort by order
    coerce defaults type required default enum agent parallel branch waitFor id maxAttempts retryOn
    script mcpServers servers mcp environment audit allowed_commands expose_env env_file policies
    command args env url transport stdio http auth bearer oauth token tls breaker sandbox trust trusted
    protocol a b string number any ${a.output} ${input.x ${} ${b} scripts/x fsync
    """,
)

leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(WORDS)
shapes = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=40,
)
steps = st.dictionaries(st.sampled_from(WORDS), shapes, max_size=6).map(
    lambda more: {"name": "a", "operation": "transform", "config": {"value": 1}} | more
)
ensembles = st.fixed_dictionaries(
    {"agents": shapes | st.lists(steps | shapes, max_size=4)},
    optional={"flow": shapes, "inputs": shapes, "outputs": shapes, "name": leaves},
)
entries = st.dictionaries(st.sampled_from(WORDS), shapes, max_size=6)
projects = st.fixed_dictionaries(
    {"mcpServers": shapes | st.dictionaries(st.sampled_from(WORDS), entries, max_size=3)},
    optional={"environment": leaves, "audit": shapes, "expose_env": shapes, "env_file": leaves},
)


def are_faults(faults: list[Fault]) -> bool:
    return all(fault.message for fault in faults)


@settings(deadline=None)
@given(ensembles | shapes)
def test_ensembles_of_any_shape(data: Any) -> None:
    ensemble, faults = examine(Document("f", data))
    assert are_faults(faults)
    if ensemble is not None:
        known = {ensemble.name: ensemble}
        assert are_faults(check_ensemble(ensemble, read_project({}, root="/nowhere"), known))


@settings(deadline=None)
@given(projects | shapes)
def test_projects_of_any_shape(data: Any) -> None:
    project, faults = examine_project(Document("f", data), root=Path("/nowhere"))
    assert are_faults(faults)
    if project is not None:
        assert are_faults(check_project(project, {}))
