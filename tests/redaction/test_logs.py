"""Lines of our loggers hold no secrets, whoever handles them, and neither do tracebacks."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from contextlib import redirect_stderr

import pytest

from luthier.redaction import RedactingFormatter, logger, print_exception
from luthier.secrets import Secret

CANARY = "canary-in-a-line"


class Lines(logging.Handler):
    """A stranger's handler, which formats as the standard library does and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text += self.format(record) + "\n"
        self.records.append(record)


def test_message_arguments_traceback_and_stack_are_redacted_for_every_handler() -> None:
    Secret(CANARY)
    lines, log = Lines(), logger("luthier.of_a_test")
    log.addHandler(lines)
    try:
        int(CANARY)
    except ValueError:
        log.exception("%s and %r", CANARY, {"a": CANARY}, stack_info=True)
    log.removeHandler(lines)
    assert CANARY not in lines.text
    assert "invalid literal for int() with base 10: '[redacted]'" in lines.text
    assert "Traceback" in lines.text
    assert "Stack (most recent call last)" in lines.text
    assert CANARY not in repr(vars(lines.records[0]))


def test_the_formatter_redacts_lines_of_others() -> None:
    Secret(CANARY)
    lines, log = Lines(), logging.getLogger("somebody.else")
    lines.setFormatter(RedactingFormatter("%(name)s %(message)s"))
    log.addHandler(lines)
    log.warning("seen: %s", CANARY)
    log.removeHandler(lines)
    assert lines.text == "somebody.else seen: [redacted]\n"


def test_a_traceback_on_the_terminal_is_redacted() -> None:
    Secret(CANARY)
    stream = io.StringIO()
    with redirect_stderr(stream), pytest.raises(ValueError, match=CANARY) as raised:
        raise ValueError(CANARY)
    with redirect_stderr(stream):
        print_exception(raised.type, raised.value, raised.tb)
    assert stream.getvalue().endswith("ValueError: [redacted]\n")


def test_the_command_prints_a_fault_of_its_own_redacted() -> None:
    code = (
        "import luthier.cli.app as app, luthier.cli, luthier.secrets\n"
        f"luthier.secrets.Secret({CANARY!r})\n"
        "class Broken:\n"
        f"    def __call__(self, **_): raise RuntimeError({CANARY!r})\n"
        "app.app = Broken()\n"
        "luthier.cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert "RuntimeError: [redacted]" in done.stderr
