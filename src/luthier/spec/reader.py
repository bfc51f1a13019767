"""Reads one mapping of a document key by key: every spelling of a key, every fault in plain words.

A reader knows the keys that it was asked for, so what is left at the end is unknown. A key is asked for in
snake_case and found in camelCase too. An empty value counts as an absent one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from luthier.spec.words import WHOLE, kind, listed, meant, quoted, wrong_type
from luthier.text import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from luthier.errors import Fault
    from luthier.spec.document import Document
    from luthier.spec.origin import KeyPath


class Sink:
    """Where the faults of one document gather."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[Fault] = []

    def add(
        self, message: str, path: KeyPath, *, key: bool = False, suggestion: str = "", warning: bool = False
    ) -> None:
        self.faults.append(
            self.document.fault(message, path, key=key, suggestion=suggestion, warning=warning)
        )

    def wrong(self, expected: str, path: KeyPath, value: Any) -> None:
        """A value of the wrong type; the key that the message names is the last one on the path."""
        message, suggestion = wrong_type(_last(path), expected, value)
        self.add(message, path, suggestion=suggestion)

    def texts(self, path: KeyPath, value: Any, expected: str = "a list of texts") -> tuple[str, ...] | None:
        """A list of texts; None, and the faults, for anything else."""
        if not isinstance(value, (list, tuple)):
            self.wrong(expected, path, value)
            return None
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.wrong("text", (*path, index), item)
        return tuple(item for item in value if isinstance(item, str))


class Found(NamedTuple):
    """A key that is there: its path and its value."""

    path: KeyPath
    value: Any


class Reader:
    """One mapping. Ask for every key that may be there, then call `done`.

    `lifted` tells where keys stand that were lifted into this mapping from one inside it. `places` grows into
    the place of every key that was found and says something, by the first of its names.
    """

    def __init__(
        self,
        sink: Sink,
        path: KeyPath,
        data: Mapping[str, Any],
        lifted: Mapping[str, KeyPath] | None = None,
    ) -> None:
        self.sink = sink
        self.path = path
        self.data = data
        self.places: dict[str, KeyPath] = {}
        self._lifted = lifted or {}
        self._known: dict[str, str] = {}  # every spelling → the one to suggest
        self._used: set[str] = set()

    @classmethod
    def of(cls, sink: Sink, path: KeyPath, data: Any, what: str) -> Reader | None:
        """A reader of what should be a mapping; None, and a fault, where it is none."""
        if isinstance(data, dict):
            return cls(sink, path, data)
        sink.add(f"{what} must be a mapping, not {kind(data)}", path)
        return None

    def raw(self, *names: str) -> Found | None:
        """The value of a key under any of its names, null too; a fault where two stand together."""
        spellings = dict.fromkeys(spelling for name in names for spelling in (name, camel(name)))
        there = [spelling for spelling in spellings if spelling in self.data]
        for name in names:
            self._known.setdefault(name, name)
            self._known.setdefault(camel(name), name)
        self._used.update(there)
        if len(there) > 1:
            message = f"{quoted(there[1])} says the same as {quoted(there[0])}: write only one of them"
            self.sink.add(message, self.at(there[1]), key=True)
        if not there:
            return None
        if self.data[there[0]] is not None:
            self.places[names[0]] = self.at(there[0])
        return Found(self.at(there[0]), self.data[there[0]])

    def at(self, key: str) -> KeyPath:
        """Where a key stands."""
        return self._lifted.get(key, (*self.path, key))

    def take(self, *names: str, required: bool = False) -> Found | None:
        """Like `raw`, but null is as good as nothing; a fault where a required key is not there."""
        found = self.raw(*names)
        if found is not None and found.value is not None:
            return found
        if required:
            self.sink.add(f"{quoted(names[0])} is missing", found.path if found else self.path)
        return None

    def text(self, *names: str, required: bool = False) -> str | None:
        found = self.take(*names, required=required)
        if found is None:
            return None
        if not isinstance(found.value, str):
            self.sink.wrong("text", *found)
            return None
        if required and not found.value.strip():
            self.sink.add(f"{quoted(_last(found.path))} is empty", found.path)
            return None
        return found.value

    def flag(self, *names: str, default: bool = False) -> bool:
        found = self.take(*names)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            self.sink.wrong("true or false", *found)
            return default
        return found.value

    def whole(self, *names: str, low: int = 0, high: int | None = None) -> int | None:
        """A whole number within bounds; 4.0 is one."""
        found = self.take(*names)
        if found is None:
            return None
        value = found.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.sink.wrong(WHOLE, *found)
            return None
        if value < low or (high is not None and value > high):
            bounds = f"at least {low}" if high is None else f"from {low} to {high}"
            self.sink.add(f"{quoted(_last(found.path))} must be {bounds}, not {value}", found.path)
            return None
        return value

    def seconds(self, *names: str, per: int = 1000, zero: bool = False) -> float | None:
        """A time in seconds; the file counts in parts of which there are `per` to a second."""
        word = "a number of milliseconds" if per > 1 else "a number of seconds"
        found = self.take(*names)
        if found is None:
            return None
        if not isinstance(found.value, (int, float)) or isinstance(found.value, bool):
            self.sink.wrong(word, *found)
            return None
        if found.value < 0 or (found.value == 0 and not zero):
            bound = "0 or more" if zero else "more than 0"
            self.sink.add(f"{quoted(_last(found.path))} must be {bound}, not {found.value}", found.path)
            return None
        return found.value / per  # not multiplied by 0.001: 1100 is 1.1 and not a hair more

    def choice(self, options: Mapping[str, str] | Iterable[str], *names: str) -> str | None:
        """One of some words; a mapping leads from each spelling to what it means."""
        spelled = options if isinstance(options, dict) else {option: option for option in options}
        found = self.take(*names)
        if found is None:
            return None
        if isinstance(found.value, str) and found.value in spelled:
            return str(spelled[found.value])
        words = listed(dict.fromkeys(spelled.values()))
        if not isinstance(found.value, str):
            self.sink.wrong(f"one of {words}", *found)
        else:
            message = f"{quoted(_last(found.path))} must be one of {words}, not {quoted(found.value)}"
            self.sink.add(message, found.path, suggestion=meant(found.value, spelled))
        return None

    def texts(self, *names: str) -> tuple[str, ...] | None:
        found = self.take(*names)
        return self.sink.texts(*found) if found else None

    def who(self, *names: str) -> tuple[str, ...] | None:
        """Those that something is kept for, as a list of texts; None for everybody. Not said is no answer."""
        found = self.stated(*names, nobody="nobody")
        return self.sink.texts(*found) if found else None

    def stated(self, *names: str, nobody: str = "none") -> Found | None:
        """Like `take`, for who or what is let in: empty is a fault, as it could mean all or none."""
        found = self.raw(*names)
        if found is None or found.value is not None:
            return found
        hint = f"[] for {nobody}, or leave the key out"
        self.sink.add(f"{quoted(_last(found.path))} is empty", found.path, key=True, suggestion=hint)
        return None

    def text_map(self, *names: str) -> dict[str, str]:
        """A mapping of texts."""
        inner = self.inner(*names)
        if inner is None:
            return {}
        for key, value in inner.data.items():
            if not isinstance(value, str):
                self.sink.wrong("text", (*inner.path, key), value)
        return {key: value for key, value in inner.data.items() if isinstance(value, str)}

    def inner(self, *names: str, required: bool = False) -> Reader | None:
        """A reader of the mapping under a key."""
        found = self.take(*names, required=required)
        return Reader.of(self.sink, found.path, found.value, quoted(_last(found.path))) if found else None

    def refuse(self, names: Sequence[str], message: Callable[[str], str], *, warning: bool = False) -> None:
        """Keys that are understood but not wanted here."""
        for name in names:
            if found := self.raw(name):
                self.sink.add(message(_last(found.path)), found.path, key=True, warning=warning)
            self._known = {spelling: target for spelling, target in self._known.items() if target != name}

    def done(self, hints: Mapping[str, str] | None = None) -> None:
        """Everything that was not asked for is unknown. `hints` answers well-known guesses."""
        for key in self.left():
            suggestion = (hints or {}).get(key) or self._near(key)
            self.sink.add(f"unknown key {quoted(key)}", self.at(key), key=True, suggestion=suggestion)

    def left(self) -> tuple[str, ...]:
        """The keys that nobody has asked for."""
        return tuple(key for key in self.data if key not in self._used)

    def _near(self, key: str) -> str:
        """The known keys that are most like it, each in one spelling; all of them where none is."""
        found = dict.fromkeys(self._known[spelling] for spelling in near(key, self._known))
        if found:
            spelled = found if key.islower() else dict.fromkeys(map(camel, found))
            return f"did you mean {' or '.join(spelled)}?"
        return f"known here: {listed(dict.fromkeys(self._known.values()))}"


def camel(name: str) -> str:
    """`max_retries` as `maxRetries`."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _last(path: KeyPath) -> str:
    """The key at the end of a path; for an item of a list, with its index."""
    named = next((index for index in range(len(path) - 1, -1, -1) if isinstance(path[index], str)), 0)
    return "".join(f"[{part}]" if isinstance(part, int) else part for part in path[named:])
