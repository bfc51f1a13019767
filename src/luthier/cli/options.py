"""What every command shares: the project it works on, how errors become words and exit statuses."""

from __future__ import annotations

import functools
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

from luthier.errors import LuthierError
from luthier.redaction import RedactingFormatter, logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from luthier.events import Observer
    from luthier.spec import Project

P = ParamSpec("P")

OK, FAILED, USAGE, REFUSED = 0, 1, 2, 3

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@dataclass(frozen=True)
class Settings:
    """What was said before the command's name."""

    project: Path | None = None
    verbose: int = 0


def found_project(context: typer.Context) -> Project:
    """The project of this command: the file that was named, or the nearest, or none at all."""
    from luthier.spec import find_project, load_project, read_project

    chosen: Settings = context.obj
    path = chosen.project or find_project(Path.cwd())
    if path is not None:
        return load_project(path)
    from luthier.store import with_registered

    return with_registered(read_project({}, root=Path.cwd()), os.environ)


def start_logging(context: typer.Context) -> tuple[Observer, ...]:
    """Log to stderr as asked for by -v, and give whom events are to be told for it; without -v nobody."""
    from luthier.observe import LogObserver

    chosen: Settings = context.obj
    if not chosen.verbose:
        return ()
    level = logging.INFO if chosen.verbose == 1 else logging.DEBUG
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    return (LogObserver(),)


def command(function: Callable[P, int]) -> Callable[P, None]:
    """A command returns its exit status; errors of the tree are shown and given theirs.

    With --json an error is a document on stdout as well.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from luthier.cli.render import OutputError, echo, error_document, show_error, to_json

        try:
            status = function(*args, **kwargs)
        except LuthierError as error:
            status = exit_status(error)
            if kwargs.get("json") and not isinstance(error, OutputError):
                echo(to_json(error_document(error)))
            show_error(error)
        except (OSError, RecursionError, UnicodeError, MemoryError) as error:
            # What the machine or the words given to us do not allow; -vv tells where.
            logger("luthier").debug("the command failed", exc_info=True)
            told = LuthierError(_words(error))
            if kwargs.get("json"):
                echo(to_json(error_document(told)))
            show_error(told)
            status = FAILED
        raise typer.Exit(status)

    return wrapped


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    return f"{type(error).__name__}: {error}"


def status_of(errors: Iterable[LuthierError]) -> int:
    """Where nothing but errors came of it: 0 for none, else the gravest of theirs."""
    return max(map(exit_status, errors), default=OK)


def exit_status(error: LuthierError) -> int:
    """2 where nothing was started: faults in files, usage, names; 3 for refusals by rule, 1 for the rest."""
    from luthier import errors

    match error:
        case errors.NotFoundError(what="tool"):
            return FAILED  # only its server knew
        case errors.FaultsError() | errors.NotFoundError() | errors.UnresolvedReferenceError():
            return USAGE
        case errors.ToolDefinitionError():
            return USAGE
        case errors.Refused(refusal_kind="arguments"):
            return FAILED  # the schema is the server's
        case errors.Refused() | errors.ApprovalNeededError():
            return REFUSED
        case _:
            return FAILED
