"""The file of `luthier mock`: the tools of one server, what each answers, and how it misbehaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.connect.traffic import read_traffic
from luthier.errors import Fault, SpecError
from luthier.spec import load
from luthier.spec.reader import Reader, Sink
from luthier.testing.recording import replayed
from luthier.wire import Delay, Fail, Hang

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.spec.reader import Found

_DEFINITION = ("title", "description", "inputSchema", "outputSchema", "annotations")
_ANSWERS = ("returns", "echoes", "sequence", "is_error", "fails", "hangs", "crashes")


class Crash(msgspec.Struct, frozen=True):
    """The server ends at once, without an answer."""


class Repeated:
    """Another answer for each call, the last for all that follow."""

    def __init__(self, answers: list[Any]) -> None:
        self._left = answers

    def __call__(self, arguments: dict[str, Any]) -> Any:
        answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        return answer(arguments) if callable(answer) else answer


class MockServer(msgspec.Struct, frozen=True):
    """A server's name, its tools' definitions, and what each tool answers."""

    name: str
    definitions: dict[str, dict[str, Any]]
    answers: dict[str, Any]


def read_mock_file(path: Path, server: str = "") -> MockServer:
    """A mock file, or a recording; `server` chooses among those of a recording. Raises SpecError."""
    if path.is_file() and path.read_bytes()[:200].lstrip().startswith(b'{"traffic"'):
        return _recorded(path, server)
    document = load(path)
    sink = Sink(document)
    reader = Reader.of(sink, (), document.data, "a mock file")
    found = MockServer(server or path.stem, {}, {}) if reader is None else _read(reader, server or path.stem)
    if sink.faults:
        raise SpecError(sink.faults)
    return found


def _recorded(path: Path, server: str) -> MockServer:
    traffic = read_traffic(path)
    servers = list(traffic.definitions)
    chosen = server or (servers[0] if len(servers) == 1 else "")
    if chosen not in servers:
        there = ", ".join(servers) or "none"
        message = (
            f"the recording holds no server {server!r}" if server else "the recording holds several servers"
        )
        raise SpecError(
            [Fault(f"{message}; it has {there}", file=str(path), suggestion="name one: --server ID")]
        )
    mine = {uri: some for uri, some in traffic.exchanges.items() if uri.server == chosen}
    answers = replayed(msgspec.structs.replace(traffic, exchanges=mine), again=True)
    tools = {key.partition(":")[2]: answer for key, answer in answers.items()}
    return MockServer(chosen, {name: traffic.definitions[chosen][name] for name in tools}, tools)


def _read(reader: Reader, name: str) -> MockServer:
    name = reader.text("server") or name
    definitions: dict[str, dict[str, Any]] = {}
    answers: dict[str, Any] = {}
    tools = reader.inner("tools", required=True)
    for tool in tools.data if tools else ():
        inner = tools.inner(tool) if tools else None
        if inner is not None:
            found = [(key, inner.take(key)) for key in _DEFINITION]
            definitions[tool] = {key: one.value for key, one in found if one is not None}
            answers[tool] = _answer(inner)
    reader.done()
    return MockServer(name, definitions, answers)


def _answer(reader: Reader) -> Any:
    """What one mapping says, and a fault where it says nothing or more than one thing."""
    delay = reader.seconds("delay", zero=True)
    there = [(key, found) for key in _ANSWERS if (found := reader.raw(key)) is not None]
    reader.done()
    if len(there) != 1:
        said = f"says {len(there)} of these" if there else "says no answer"
        reader.sink.add(f"a tool {said}", reader.path, suggestion=f"one of {', '.join(_ANSWERS)}")
        return None
    ((key, found),) = there
    answer = _meant(reader, key, found)
    if not delay:
        return answer
    return lambda arguments: Delay(delay, answer(arguments) if callable(answer) else answer)


def _meant(reader: Reader, key: str, found: Found) -> Any:
    match key:
        case "echoes":
            return lambda arguments: arguments
        case "is_error":
            return {"isError": True, "content": found.value}
        case "fails":
            return Fail(str(found.value))
        case "hangs":
            return Hang()
        case "crashes":
            return lambda _: Crash()
        case "sequence":
            return _sequence(reader.sink, found)
        case _:
            return found.value


def _sequence(sink: Sink, found: Found) -> Any:
    if not isinstance(found.value, list) or not found.value:
        sink.wrong("a list of answers", *found)
        return None
    items = [Reader.of(sink, (*found.path, place), one, "an answer") for place, one in enumerate(found.value)]
    return Repeated([_answer(item) for item in items if item is not None])
