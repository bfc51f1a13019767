"""Budgets as frozen values, read from `budgets:`: how much may be used, of what, by whom, in what time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import msgspec

from luthier.spec.origin import Origin
from luthier.spec.patterns import check_address
from luthier.spec.reader import Reader

if TYPE_CHECKING:
    from luthier.spec.reader import Found

Per = Literal["run", "minute", "hour", "day"]
PER: tuple[Per, ...] = ("run", "minute", "hour", "day")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One budget. `agent`, `server` and `tool` are patterns: what each fits is counted by itself.

    So `agent: "*"` gives every caller as much; without `agent` all callers share. `calls`, `seconds` and
    `bytes` (of arguments and results) None: not limited.
    """

    name: str
    per: Per
    agent: str | None = None
    server: str | None = None
    tool: str | None = None
    calls: int | None = None
    seconds: float | None = None
    bytes: int | None = None
    place: str = ""


def read_budgets(reader: Reader) -> tuple[Budget, ...]:
    """A list of budgets."""
    found = reader.take("budgets")
    if found is None:
        return ()
    if not isinstance(found.value, list):
        reader.sink.wrong("a list of budgets", *found)
        return ()
    read = (_budget(reader, found, index) for index in range(len(found.value)))
    return tuple(budget for budget in read if budget is not None)


def _budget(outer: Reader, found: Found, index: int) -> Budget | None:
    sink, path = outer.sink, (*found.path, index)
    reader = Reader.of(sink, path, found.value[index], "a budget")
    if reader is None:
        return None
    before = len(sink.faults)
    name = reader.text("name") or f"budget {index + 1}"
    per = cast("Per | None", reader.choice(PER, "per"))
    if per is None and "per" not in reader.places:
        sink.add("`per` is missing", path, suggestion="run, minute, hour or day")
    agent, server, tool = (reader.text(key) for key in ("agent", "server", "tool"))
    if tool is not None:
        check_address(sink, reader.places["tool"], tool)
    calls, size = reader.whole("calls"), reader.whole("bytes")
    seconds = reader.seconds("time_ms", zero=True)
    reader.done({"time": "write time_ms", "tokens": "this version counts calls, time_ms and bytes"})
    if calls is None and seconds is None and size is None and len(sink.faults) == before:
        sink.add("a budget must say calls, time_ms or bytes", path)
    if per is None or len(sink.faults) > before:
        return None
    return Budget(
        name=name,
        per=per,
        agent=agent,
        server=server,
        tool=tool,
        calls=calls,
        seconds=seconds,
        bytes=size,
        place=Origin(sink.document, path).place(),
    )
