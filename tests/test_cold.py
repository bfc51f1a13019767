"""Starting is cheap: the heavy libraries stay out until something needs them."""

from __future__ import annotations

import subprocess
import sys

from tests.uncounted import uncounted

HELP = "from luthier.cli import main; main()"

HEAVY = {"aiohttp", "anthropic", "genai_prices", "mcp", "openai", "pydantic_ai", "sqlalchemy"}
OF_ROOMS = {"jsonschema_rs", "lark", "pydantic", "rich", "ruamel", "typer"}


def loaded(code: str, *arguments: str) -> set[str]:
    """The top-level names of all modules that a fresh interpreter loads for `code`."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *arguments],
        env=uncounted(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_the_probe_sees_what_is_loaded() -> None:
    assert {"asyncio", "lark"} <= loaded("import asyncio; from lark import Lark")


def test_import_luthier_loads_no_third_party_of_any_room() -> None:
    assert loaded("import luthier") & (HEAVY | OF_ROOMS) == set()


def test_luthier_help_loads_nothing_heavy() -> None:
    assert loaded(HELP, "--help") & HEAVY == set()


def test_a_model_loads_its_libraries_with_its_first_turn() -> None:
    ready = (
        "from luthier.models.providers import Connection, ProviderModel; ProviderModel(lambda: Connection("
    )
    assert loaded(f"{ready}id='a', kind='anthropic'))") & HEAVY == set()
