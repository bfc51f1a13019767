"""What keeps secrets out of everything that is shown or kept: errors, logs, events, records."""

from luthier.redaction.logs import RedactingFormatter, logger, print_exception
from luthier.redaction.redactor import Redactor, known, redact, redact_value

__all__ = ["RedactingFormatter", "Redactor", "known", "logger", "print_exception", "redact", "redact_value"]
