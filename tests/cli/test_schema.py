"""`luthier schema`: what editors check a file with while it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema_rs

from luthier.spec import load
from luthier.spec.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Cli = Callable[..., Result]


def test_the_schema_of_a_file_is_printed_whole(cli: Cli) -> None:
    for kind, schema in SCHEMAS.items():
        done = cli("schema", kind)
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout) == schema


def test_what_init_writes_fits_the_schemas(project: Path) -> None:
    for file, kind in (("luthier.yaml", "project"), ("ensembles/hello.yaml", "ensemble")):
        jsonschema_rs.Draft202012Validator(SCHEMAS[kind]).validate(load(project / file).data)


def test_a_kind_of_file_that_has_no_schema_is_named_with_those_that_have_one(cli: Cli) -> None:
    done = cli("schema", "topology")
    assert done.exit_code == 2
    assert "ensemble" in done.stderr
    assert "project" in done.stderr
