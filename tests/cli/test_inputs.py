"""What people hand in on the command line: JSON with a key twice, and what stdin may be."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from luthier.cli.asking import typed_value
from luthier.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Cli = Callable[..., Result]

TWICE = '{"a": 1, "b": {"c": 1, "c": 2}}'


@pytest.mark.parametrize(
    "words",
    [
        ("call", "mcp://greeter/greet", "--args", TWICE),
        ("call", "mcp://greeter/greet", "-a", f"name={TWICE}"),
        ("call", "mcp://greeter/greet", "-a", "name=@twice.json"),
        ("run", "hello", "-i", f"other={TWICE}"),
        ("run", "hello", "-i", "other=@twice.json"),
        ("run", "hello", "--inputs", "twice.json"),
        ("run", "hello", "--inputs", "-"),
        ("run", "hello", "--mock", f"greeter:greet={TWICE}"),
        ("run", "hello", "--replay", "recording.jsonl"),
        ("mock", "twice.json"),
        ("mock", "recording.jsonl"),
        ("servers", "import", "twice.json"),
        ("--project", "twice.json", "check"),
    ],
)
def test_json_with_a_key_twice_is_refused_with_its_place(
    cli: Cli, project: Path, words: tuple[str, ...]
) -> None:
    (project / "twice.json").write_text(TWICE)
    recorded = '{"traffic":1}\n{"call":"mcp://greeter/greet","arguments":{"b":{"c":1,"c":2}},"result":{}}\n'
    (project / "recording.jsonl").write_text(recorded)
    done = cli(*words, stdin=TWICE)
    assert done.exit_code == 2, done.output
    assert "`c` stands" in done.stderr
    assert "second time" in done.stderr
    assert "column 24" in done.stderr or ":24:" in done.stderr or "recording.jsonl:2:55:" in done.stderr


def test_a_text_input_is_text_whatever_it_looks_like(cli: Cli, project: Path) -> None:
    assert TWICE.replace('"', '\\"') in cli("run", "hello", "--json", "-i", f"name={TWICE}").stdout


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (TWICE, {"type": "string"}, TWICE),
        ('{"a": 1}', {"type": "string"}, '{"a": 1}'),
        ('{"a": 1}', None, {"a": 1}),
        ("{", None, "{"),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
def test_an_answer_is_json_or_text_as_it_is_wanted(text: str, schema: Any, value: Any) -> None:
    assert typed_value(text, schema) == value


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "number"}])
def test_an_answer_with_a_key_twice_is_no_answer(schema: Any) -> None:
    with pytest.raises(InputError, match="`c` stands a second time in line 1, column 24"):
        typed_value(TWICE, schema)


def fed(project: Path, given: bytes | None, *words: str) -> subprocess.CompletedProcess[bytes]:
    """The command with these bytes on stdin; None: it is closed."""
    command = [sys.executable, "-m", "luthier", *words]
    if given is None:
        command = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command]
    return subprocess.run(command, input=given, cwd=project, capture_output=True, timeout=50, check=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, b"stdin is closed"),
        (b"name: \xff", b"stdin:1:7: error: this is not UTF-8 text"),
        (b"x" * (1024 * 1024 + 1), b"larger than 1024 KiB"),
        (b"[1]", b"must be a mapping"),
    ],
)
def test_what_stdin_gives_that_is_no_input_is_a_fault(
    project: Path, given: bytes | None, said: bytes
) -> None:
    done = fed(project, given, "run", "hello", "--inputs", "-")
    assert (done.returncode, said in done.stderr, b"Traceback" in done.stderr) == (2, True, False), (
        done.stderr
    )


def test_stdin_is_read_as_files_are(project: Path) -> None:
    done = fed(project, "name: Zoë".encode("utf-16"), "run", "hello", "--inputs", "-")
    assert (done.returncode, "Hello, Zoë".encode() in done.stdout) == (0, True), done.stderr


def test_a_secret_is_not_read_from_a_stdin_that_is_closed(project: Path) -> None:
    done = fed(project, None, "secrets", "set", "x")
    assert (done.returncode, b"1 to 65536" in done.stderr) == (2, True), done.stderr
