"""How a command asks the person at the terminal about a call, in place."""

from __future__ import annotations

import getpass
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from luthier.govern import Request
    from luthier.govern.records import Tag

_one_at_a_time = threading.Lock()


class Asker:
    """Asks on this terminal. `via` is what the audit log says of who answered."""

    def __init__(self, paused: Callable[[], AbstractContextManager[object]]) -> None:
        self._paused = paused
        self.via = f"terminal, {person()}"

    def __call__(self, request: Request) -> bool:
        """Ask, and take only what is typed after the question."""
        import termios

        from luthier.cli.render import echo, paint

        with _one_at_a_time, self._paused():
            echo("\n".join(lines_of(request)), sys.stderr)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
            sys.stderr.write(f"{paint('approve this call?', 'yellow')} yes or [no] ")
            sys.stderr.flush()
            return sys.stdin.readline().strip().lower() in ("y", "yes")


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
    """A request for people: the call, who makes it, why it is asked for, each argument and its origin."""
    from luthier.text import one_line

    who = " > ".join(map(one_line, request.principals))
    where = f" in run {one_line(request.run)} at step {one_line(request.step)!r}" if request.run else ""
    said = one_line(request.reason or request.rule)
    lines = [
        f"{one_line(request.uri)} wants an approval: {said}",
        f"  rule    {one_line(' '.join(filter(None, (request.rule, request.place))))}",
        f"  caller  {who}{where}",
    ]
    if request.control is not None:
        lines.append(f"  branch  {origin_of(request.control)}")
    for argument in request.arguments:
        lines.append(f"  {one_line(argument.at)} = {argument.shown}")
        lines.append(f"      from {origin_of(argument.label)}")
    if request.more:
        lines.append(f"  and {request.more} more arguments")
    return lines


def origin_of(label: Tag | None) -> str:
    """A label for people: `untrusted private: web/fetch#r1/get/1`."""
    from luthier.text import one_line

    if label is None:
        return "the project or the operator"
    sources = f": {', '.join(map(one_line, label.sources))}" if label.sources else ""
    return f"{label.integrity} {label.confidentiality}{sources}"
