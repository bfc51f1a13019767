"""Loggers whose lines hold no secrets, whoever handles them; and tracebacks likewise."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING

from luthier.redaction.redactor import redact

if TYPE_CHECKING:
    from types import TracebackType

_FORMATTER = logging.Formatter()


class RedactingFilter(logging.Filter):
    """Puts the finished and redacted message, and the redacted traceback, in the place of their parts."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info:
            # As text only: a handler that walked over the exception would meet whatever its frames hold.
            record.exc_text = redact(record.exc_text or _FORMATTER.formatException(record.exc_info))
            record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


class RedactingFormatter(logging.Formatter):
    """For handlers that also take lines of others: redacts what it would write."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


_FILTER = RedactingFilter()


def logger(name: str) -> logging.Logger:
    """The logger of that name, with the filter in it. A filter works only for the logger that holds it."""
    found = logging.getLogger(name)
    found.addFilter(_FILTER)
    return found


def print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What `sys.excepthook` does, redacted."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))
