"""How a command asks the person at the terminal, in place, and how requests are shown to people."""

from __future__ import annotations

import getpass
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from luthier.govern import Answer, Request
    from luthier.govern.records import Tag

LONGEST_SCHEMA = 2_000
_TRIES = 3
_one_at_a_time = threading.Lock()


class Asker:
    """Asks on this terminal. `via` is what the audit log says of who answered."""

    def __init__(self, paused: Callable[[], AbstractContextManager[object]]) -> None:
        self._paused = paused
        self.via = f"terminal, {person()}"

    def __call__(self, request: Request) -> Answer:
        """Ask, and take only what is typed after the question."""
        import termios

        from luthier.cli.render import echo, paint
        from luthier.govern import Answer

        with _one_at_a_time, self._paused():
            echo("\n".join(lines_of(request)), sys.stderr)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
            question = "approve this call?" if request.what == "call" else "your answer?"
            if request.schema is not None:
                return self._answered(request)
            sys.stderr.write(f"{paint(question, 'yellow')} yes or [no] ")
            sys.stderr.flush()
            return Answer(approved=sys.stdin.readline().strip().lower() in ("y", "yes"))

    def _answered(self, request: Request) -> Answer:
        """What is typed, when it fits; an empty line is a no, and so is the third that does not fit."""
        from luthier.cli.render import echo, paint
        from luthier.errors import InputError
        from luthier.govern import Answer
        from luthier.govern.deciding import answer_fault

        for _ in range(_TRIES):
            sys.stderr.write(f"{paint('your answer?', 'yellow')} text or JSON, or [no] ")
            sys.stderr.flush()
            typed = sys.stdin.readline().strip()
            if not typed:
                break
            try:
                value = typed_value(typed, request.schema)
            except InputError as error:
                echo(str(error), sys.stderr)
                continue
            fault = answer_fault(request.schema, value)
            if fault is None:
                return Answer(approved=True, value=value)
            echo(fault, sys.stderr)
        return Answer(approved=False)


def typed_value(text: str, schema: dict[str, Any] | None) -> Any:
    """What was typed: the JSON that it is, or the text where only that fits.

    Raises InputError for JSON with a key twice, where it is not text that is wanted.
    """
    import json

    from luthier.errors import Fault, InputError
    from luthier.given import RepeatedNameError, given_json
    from luthier.govern.deciding import answer_fault

    twice = None
    try:
        value = given_json(text)
    except RepeatedNameError as error:
        value, twice = json.loads(text), error
    except (ValueError, RecursionError):
        return text
    if answer_fault(schema, value) and not answer_fault(schema, text):
        return text
    if twice is not None:
        raise InputError([Fault(f"the answer is JSON, and {twice}")])
    return value


def asker(paused: Callable[[], AbstractContextManager[object]] = nullcontext) -> Asker | None:
    """What asks on this terminal; None where there is none. `paused` keeps the progress still meanwhile."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return None
    return Asker(paused)


def person() -> str:
    """Who is logged in, as far as the machine knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


def lines_of(request: Request) -> list[str]:
    """A request for people: what is asked, by whom and why, and each value with its origin."""
    import json

    from luthier.text import one_line

    who = " > ".join(map(one_line, request.principals))
    where = f" in run {one_line(request.run)} at step {one_line(request.step)!r}" if request.run else ""
    lines = [
        *_head(request),
        f"  rule    {one_line(' '.join(filter(None, (request.rule, request.place))))}",
        f"  caller  {who}{where}",
    ]
    if request.control is not None:
        lines.append(f"  branch  {origin_of(request.control)}")
    for argument in request.arguments:
        lines.append(f"  {one_line(argument.at)} = {argument.shown}")
        lines.append(f"      from {origin_of(argument.label)}")
    if request.more:
        lines.append(f"  and {request.more} more values")
    if request.schema is not None:
        lines.append(f"  answer  {one_line(json.dumps(request.schema, ensure_ascii=False), LONGEST_SCHEMA)}")
    return lines


def _head(request: Request) -> list[str]:
    """What is asked, in the words of the step or the server, which are marked as theirs."""
    from luthier.text import escape, one_line

    if request.what == "call":
        return [f"{one_line(request.uri)} wants an approval: {one_line(request.reason or request.rule)}"]
    asks = f"{one_line(request.uri)} asks" if request.uri else f"step {one_line(request.step)!r} asks"
    words = [f"  | {line}" for line in escape(request.prompt).splitlines()]
    said = [] if request.said is None else [f"      from {origin_of(request.said)}"]
    return [f"{asks}:", *words, *said]


def origin_of(label: Tag | None) -> str:
    """A label for people: `untrusted private: web/fetch#r1/get/1`."""
    from luthier.text import one_line

    if label is None:
        return "the project or the operator"
    sources = f": {', '.join(map(one_line, label.sources))}" if label.sources else ""
    return f"{label.integrity} {label.confidentiality}{sources}"
