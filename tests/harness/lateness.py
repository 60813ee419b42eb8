"""How late a process wakes: a measure of how busy the machine is.

A process of its own sleeps for some milliseconds, over and over. It has normal priority, so it waits for a processor as
the tests' own processes do. It imports no more than it needs, so that it starts at once.
"""

import os
import select
import struct
import subprocess
import sys
import time

_PERIOD_S = 0.005
_ANSWER = struct.Struct("d")


class Probe:
    """A process that sleeps and measures how late it wakes."""

    def __init__(self) -> None:
        command = [sys.executable, "-S", "-E", __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    @property
    def pid(self) -> int:
        return self._process.pid

    def worst_s(self) -> float:
        """The longest delay of a wake-up since the last call, in seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"?")
        worst: float = _ANSWER.unpack(self._process.stdout.read(_ANSWER.size))[0]
        return worst

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    """The work of the process: answer each octet on stdin with the worst delay since the answer before."""
    worst, woke_at = 0.0, time.monotonic()
    while True:
        asked = select.select([0], [], [], _PERIOD_S)[0]
        # from one waking to the next, so that no moment is left out
        now = time.monotonic()
        worst, woke_at = max(worst, now - woke_at - _PERIOD_S), now
        if asked:
            if not os.read(0, 1):
                return
            os.write(1, _ANSWER.pack(worst))
            worst = 0.0


if __name__ == "__main__":
    serve()
