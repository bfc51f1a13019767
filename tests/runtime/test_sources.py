"""What a project's references are looked up in, and what is known to be secret when it is loaded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from luthier.connect import MemoryState
from luthier.redaction import redact
from luthier.runtime.sources import sources_of, warn_of_written_credentials
from luthier.spec import read_project

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-of-a-project"


def test_exposed_names_of_credentials_are_known(tmp_path: Path) -> None:
    project = read_project({"expose_env": ["API_KEY", "REGION", "GONE_TOKEN"]}, root=tmp_path)
    sources_of(project, {"API_KEY": CANARY, "REGION": "a-plain-region"}, MemoryState)
    assert redact(f"<{CANARY}> a-plain-region") == "<[redacted]> a-plain-region"


@pytest.mark.parametrize(("environment", "lines"), [("development", 1), ("production", 0)])
def test_written_credentials_are_warned_of_once_and_known(
    environment: str, lines: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers = {
        "a": {"url": "https://a.example", "headers": {"X-Api-Key": CANARY}},
        "b": {"url": "https://b.example", "secret": f"{CANARY}-2"},
    }
    project = read_project({"environment": environment, "mcpServers": servers}, root=tmp_path)
    with caplog.at_level(logging.WARNING, "luthier.runtime"):
        warn_of_written_credentials(project)
    assert len(caplog.records) == lines
    assert caplog.text.count("mcpServers.a.headers.X-Api-Key and 1 more") == lines
    assert CANARY not in caplog.text
    assert redact(f"<{CANARY}> <{CANARY}-2>") == "<[redacted]> <[redacted]>"


def test_a_project_without_any_is_not_warned_of(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    warn_of_written_credentials(read_project({}, root=tmp_path))
    assert caplog.records == []
