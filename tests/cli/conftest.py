"""A small project on disk with a server in plain Python, and the command line run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from luthier.cli.app import app

Cli = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The working directory of the command."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.fixture
def cli(folder: Path) -> Cli:
    """Runs a command as a shell would; stdout and stderr apart."""
    runner = CliRunner()

    def run(*words: str, stdin: str | None = None) -> Result:
        return runner.invoke(app, list(words), input=stdin, prog_name="luthier")

    return run


@pytest.fixture
def project(cli: Cli, folder: Path) -> Path:
    """What `luthier init` writes."""
    done = cli("init")
    assert done.exit_code == 0, done.output
    return folder
