"""How a server starts, and how it ends or does not."""

from __future__ import annotations

import os
import signal
import sys
import time

from tests.faults.modes.mode import acts, mode
from tests.faults.peer import JOURNAL, encode, text

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from tests.faults.peer import Call, Json, Peer

LONG = 300
"""Seconds: longer than any test."""

STUBBORN = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({LONG})"


def last_words(words: str, status: int) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()
    os._exit(status)


def shut_output() -> None:
    """End the output. Its number stays taken: else the next file to be opened would get it."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


@mode
def plain(peer: Peer) -> None:
    """A server with no fault at all."""


@mode
def exit_at_start(_: Peer) -> None:
    """A server that cannot open its database."""
    last_words("Traceback (most recent call last):\nunable to open database file: /nowhere/x.db\n", 3)


@mode
def silent_start(peer: Peer) -> None:
    """A process that lives and never says a word."""
    peer.hear = lambda _: None


@mode
def only_prints(peer: Peer) -> None:
    """A program that is no MCP server: it prints, reads on without a word, and is slow to end."""
    peer.raw(b"Serving \x1b[1mfiles\x1b[0m at port 8000\nPress q to quit\n")
    peer.hear = lambda _: None
    ignore_term(peer)


@mode
def crash_loop(peer: Peer) -> None:
    """A server that dies at its start until it has been started often enough; the argument says how often."""
    starts = os.environ[JOURNAL] + ".starts"
    with open(starts, "a", encoding="utf-8") as file:  # noqa: PTH123  (pathlib is a slow import)
        file.write(".")
    if os.stat(starts).st_size < int(peer.arguments[0]):  # noqa: PTH116
        last_words("port still in use\n", 1)


@mode
def slow_start(peer: Peer) -> None:
    """A cold package runner that downloads first; the argument says for how many seconds."""
    time.sleep(float(peer.arguments[0]))


@mode
def ignore_eof(peer: Peer) -> None:
    """A server that does not notice that its host is gone."""
    peer.at_eof = lambda: time.sleep(LONG)


@mode
def ignore_term(peer: Peer) -> None:
    """A server that holds on through end of input and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    peer.at_eof = lambda: time.sleep(LONG)


@mode
def grandchild(peer: Peer) -> None:
    """A wrapper that starts a stubborn worker and does not take it along when it ends; `act` ends it."""
    import subprocess

    none = subprocess.DEVNULL
    worker = subprocess.Popen([sys.executable, "-c", STUBBORN], stdin=none, stdout=none, stderr=none)
    peer.note(worker=worker.pid)

    @acts(peer)
    def act(_: Call) -> None:
        os._exit(0)


@mode
def inherits_pipes(peer: Peer) -> None:
    """A server that dies in `act` while a child of it still holds its pipes open."""
    import subprocess

    peer.note(worker=subprocess.Popen([sys.executable, "-c", STUBBORN]).pid)

    @acts(peer)
    def act(_: Call) -> None:
        os._exit(9)


@mode
def dies_in_call(peer: Peer) -> None:
    """A tool that takes the whole server down: its output ends first, then it gives its reason on stderr."""

    @acts(peer)
    def act(_: Call) -> None:
        shut_output()
        time.sleep(0.1)
        last_words("Fatal: out of cheese\n", 4)


@mode
def unfinished_line(peer: Peer) -> None:
    """A server that exits right behind its answer, and never writes the newline."""

    @acts(peer)
    def act(call: Call) -> None:
        peer.raw(encode(peer.answer_to(call, text("just in time"))))
        os._exit(0)


@mode
def stops_reading(peer: Peer) -> None:
    """A server that is stuck in the message after `act`, and reads nothing any more."""

    @acts(peer)
    def act(_: Call) -> Json:
        peer.hear = lambda _: time.sleep(LONG)
        return text("stuck")


@mode
def closes_stdout(peer: Peer) -> None:
    """A server that shuts its output in `act` and stays alive."""

    @acts(peer)
    def act(_: Call) -> None:
        shut_output()
