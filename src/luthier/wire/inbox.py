"""Frames that the strict decoder refused: repaired, put together from several lines, or passed over.

An answer that cannot be read at all still ends the wait of the request that it answers, as long as the id
can be found at either end of it.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from luthier.wire.assembly import Assembly, begin
from luthier.wire.codec import MESSAGES, REFUSED, Message, decode, read
from luthier.wire.frame import EXCERPT
from luthier.wire.repair import TooMuchError, UnreadableError

if TYPE_CHECKING:
    from luthier.clock import Clock, Timer
    from luthier.wire.noise import Noise

BREAK_OFF = 2.0
"""Seconds without a further line after which an unfinished message is given up: nobody prints so slowly."""

_ID = rb'("[^"\\]{1,64}"|-?\d{1,19})'
_ANSWER = re.compile(
    rb'\s*\[?\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]{0,9}"\s*,\s*|"id"\s*:\s*'
    + _ID
    + rb'\s*,\s*)*"(?:result|error)"\s*:'
)
_TAIL = re.compile(rb',\s*"id"\s*:\s*' + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]{0,9}"\s*)?\}\s*$')


class Sink(Protocol):
    """Where the messages go."""

    def deliver(self, message: Message, notes: tuple[str, ...]) -> None:
        """A message that could be read after all."""

    def broken(self, id: bytes | None, reason: str) -> None:
        """An answer that cannot be read, to the request of that id as far as it is known."""


class Inbox:
    """Takes odd frames. While `assembling`, it must be given every frame."""

    def __init__(self, sink: Sink, clock: Clock, noise: Noise) -> None:
        self._sink = sink
        self._clock = clock
        self._noise = noise
        self._assembly: Assembly | None = None
        self._timer: Timer | None = None

    @property
    def assembling(self) -> bool:
        return self._assembly is not None

    def take(self, frame: bytes) -> None:
        if not frame.strip():
            return
        if self._assembly is not None:
            self._continue(self._assembly, frame)
        elif (refused := self._read(frame)) is not None:
            if isinstance(refused, TooMuchError):
                self._pass_over(frame, str(refused))
                return
            self._assembly = begin(frame)
            if self._assembly is None:
                self._pass_over(frame, "it is not JSON")
            else:
                self._wait(self._assembly)

    def close(self) -> None:
        """No more frames will come."""
        if self._assembly is not None:
            self._give_up(self._assembly, "it ends in the middle")

    def _read(self, frame: bytes) -> UnreadableError | None:
        """Deliver what it holds, or say why that cannot be read."""
        try:
            messages, notes = read(frame)
        except UnreadableError as error:
            return error
        for note in notes:
            self._noise.tell(f"a message was read although {note}")
        for message in messages:
            self._sink.deliver(message, notes)
        return None

    def _continue(self, assembly: Assembly, frame: bytes) -> None:
        if frame.startswith(b"{") and b'"jsonrpc"' in frame and self._stands_alone(frame):
            self._give_up(assembly, "another message began in its middle")
            self.take(frame)
            return
        assembly.add(frame)
        if assembly.refusal:
            self._give_up(assembly, assembly.refusal)
        elif not assembly.complete:
            self._wait(assembly)
        else:
            self._finish(assembly)

    def _finish(self, assembly: Assembly) -> None:
        self._stop()
        text = assembly.text
        if self._stands_alone(text):
            self._sink.deliver(decode(text), ())
        elif (refused := self._read(text)) is not None:
            reason = str(refused) if isinstance(refused, TooMuchError) else "it is not JSON"
            self._give_up(assembly, reason)
            return
        self._noise.tell("a message was read although it was spread over several lines")

    def _stands_alone(self, frame: bytes) -> bool:
        try:
            decode(frame)
        except REFUSED:
            return False
        return True

    def _give_up(self, assembly: Assembly, reason: str) -> None:
        """Its lines may be whole messages with one broken line before them."""
        self._stop()
        likely = (line for line in islice(assembly.lines, 1, None) if line.startswith(b"{"))
        for line in islice(likely, MESSAGES):
            if self._stands_alone(line):
                self._sink.deliver(decode(line), ())
        self._pass_over(assembly.text, reason)

    def _pass_over(self, text: bytes, reason: str) -> None:
        told, id = find_id(text, text)
        if told:
            self._sink.broken(id, reason)
        self._noise.passed_over(text, reason)

    def _wait(self, assembly: Assembly) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(BREAK_OFF, partial(self._give_up, assembly, "it broke off"))

    def _stop(self) -> None:
        self._assembly = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def find_id(head: bytes, tail: bytes) -> tuple[bool, bytes | None]:
    """Whether a message with these ends is an answer, and to which id, as written there and if seen.

    Only the outermost object counts: the id before `result` or `error`, or the last thing in the message.
    """
    answer = _ANSWER.match(head[:EXCERPT])
    if answer is None:
        return False, None
    found = answer[1] or (last[1] if (last := _TAIL.search(tail, max(0, len(tail) - 256))) else None)
    return True, found.strip(b'"') if found else None
