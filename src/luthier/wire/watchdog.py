"""The watchdog: a tiny shell beside us that ends our servers' process groups when we die without a word.

One for each host process, started with the first server and ended with the last. It reads `+ GROUP` and
`- GROUP` from a pipe whose other end only we hold, so it wakes by itself when we are gone, whatever killed
us. It has a session of its own and ignores the signals of a terminal; it outlives us by no more than the two
seconds that it gives.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

_SCRIPT = """
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
  esac
done
[ "$groups" = ' ' ] && exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 2
for group in $groups; do kill -s KILL -- "-$group"; done
"""
_GRACE = 0.05  # seconds that we wait for it to end once there is nothing left to watch


class Watchdog:
    """Safe to use from several threads. Where there is no shell there is no watchdog, and `watch` says so."""

    def __init__(self, shell: str = "/bin/sh") -> None:
        self._shell = shell
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    @property
    def pid(self) -> int | None:
        """Its process, None while there is nothing to watch."""
        return None if self._process is None else self._process.pid

    def watch(self, group: int) -> str:
        """Watch over this group from now on. Returns why it cannot, empty if it can."""
        with self._lock:
            self._groups.add(group)
            try:
                if self._process is None or self._process.poll() is not None:
                    self._begin()
                else:
                    self._say(f"+ {group}\n")
            except OSError as error:
                return f"nothing watches over it if we are killed: {error}"
            return ""

    def release(self, group: int) -> None:
        """That group is gone."""
        with self._lock:
            self._release({group} & self._groups)

    def close(self) -> None:
        """End it; nothing is watched any more."""
        with self._lock:
            self._release(set(self._groups))

    def forget(self) -> None:
        """We are a fork: groups and watchdog are our parent's."""
        self._lock = threading.Lock()
        self._groups.clear()
        if self._process is not None:
            self._process.returncode = 0  # not our child: never to be waited for
            self._close_pipe(self._process)
            self._process = None

    def _begin(self) -> None:
        if self._process is not None:
            self._close_pipe(self._process)
        self._process = subprocess.Popen(  # noqa: S603  (our own script)
            [self._shell, "-c", _SCRIPT, "luthier-watchdog"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
            bufsize=0,
        )
        for group in sorted(self._groups):
            self._say(f"+ {group}\n")

    def _release(self, groups: set[int]) -> None:
        self._groups -= groups
        with contextlib.suppress(OSError):
            for group in groups:
                self._say(f"- {group}\n")
        if not self._groups:
            self._end()

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line.encode())

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._close_pipe(process)
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:  # a machine under load; somebody must still collect it
            threading.Thread(target=process.wait, daemon=True).start()

    def _close_pipe(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()


WATCHDOG = Watchdog()
os.register_at_fork(after_in_child=WATCHDOG.forget)
