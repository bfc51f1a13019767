"""How a command asks the person at the terminal about a call, in place."""

from __future__ import annotations

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


def asker(
    paused: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Callable[[Request], bool] | None:
    """What asks on this terminal; None where there is none to ask on. `paused` keeps the progress still."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return None

    def ask(request: Request) -> bool:
        from luthier.cli.render import echo, paint

        with _one_at_a_time, paused():
            echo("\n".join(lines_of(request)), sys.stderr)
            sys.stderr.write(f"{paint('approve this call?', 'yellow')} yes or [no] ")
            sys.stderr.flush()
            return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask


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
