"""The single thread an agent runs on: descriptors and deadlines, nothing else.

Rule kept: never wakes without a reason; the wait is as long as the nearest deadline allows. Time is
CLOCK_MONOTONIC in ns, which all processes of a machine share. Left out: cancelling deadlines (a callback
looks at its own state).
"""

import heapq
import selectors
import time
from collections.abc import Callable
from typing import Protocol

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
Callback = Callable[[], None]


class HasFileno(Protocol):
    """Anything with a descriptor."""

    def fileno(self) -> int: ...


class Loop:
    """Calls back when descriptors are ready and when deadlines have come."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        # (deadline, insertion) orders the heap, so that callbacks are never compared.
        self._deadlines: list[tuple[int, int, Callback]] = []
        self._insertions = 0
        self._stopped = False

    def now(self) -> int:
        """CLOCK_MONOTONIC in ns."""
        return time.monotonic_ns()

    def call_at(self, deadline_ns: int, callback: Callback) -> None:
        """Call once at that time, or at the next turn when it has passed."""
        self._insertions += 1
        heapq.heappush(self._deadlines, (deadline_ns, self._insertions, callback))

    def watch(self, source: HasFileno, events: int, callback: Callback) -> None:
        """Call whenever `source` is ready for `events`; replaces what was asked for it before."""
        if source.fileno() in self._selector.get_map():
            self._selector.modify(source, events, callback)
        else:
            self._selector.register(source, events, callback)

    def forget(self, source: HasFileno) -> None:
        """Stop watching; idempotent while the source is open, and nothing after `run`."""
        watched = self._selector.get_map()
        if watched and source.fileno() in watched:
            self._selector.unregister(source)

    def stop(self) -> None:
        """Make `run` return after the callback that is running."""
        self._stopped = True

    def run(self) -> None:
        """Serve until `stop`."""
        while not self._stopped:
            timeout_s = None
            if self._deadlines:
                timeout_s = max(0, self._deadlines[0][0] - self.now()) / 1e9
            ready = self._selector.select(timeout_s)
            # Deadlines first: "received by then" must not count what is read after.
            now = self.now()
            while self._deadlines and self._deadlines[0][0] <= now and not self._stopped:
                heapq.heappop(self._deadlines)[2]()
            for key, _ in ready:
                # An earlier callback of this turn may have closed it.
                if not self._stopped and self._selector.get_map().get(key.fd) is key:
                    key.data()
        self._selector.close()
