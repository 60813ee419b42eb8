"""The event loop of a host's or a proxy's process in real time: one thread, descriptors and timed calls.

Rules kept: the loop wakes only for a ready descriptor or a due call. `now` is the CLOCK_MONOTONIC time in ns (which all
processes of a machine share) at the begin of the present callback; a callback that takes many packets calls `refresh`
before each.
"""

import heapq
import selectors
import time
from collections.abc import Callable
from typing import Any, Protocol

from typing_extensions import override

from hosts.engine.clock import NETWORK, Clock

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
Callback = Callable[[], None]


class HasFileno(Protocol):
    """An object with a descriptor."""

    def fileno(self) -> int: ...


class Loop(Clock):
    """Calls back when descriptors are ready and at given times."""

    def __init__(self) -> None:
        self.now = time.monotonic_ns()
        self._selector = selectors.EpollSelector()
        # (time, priority, insertion) orders the heap, so that calls are never compared
        self._calls: list[tuple[int, int, int, Callable[[Any], object], Any]] = []
        self._insertions = 0
        self._stopped = False

    def refresh(self) -> int:
        """Read the clock into `now`, and return it."""
        self.now = now = time.monotonic_ns()
        return now

    @override
    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = NETWORK) -> None:
        self._insertions += 1
        heapq.heappush(self._calls, (time, priority, self._insertions, call, argument))

    def watch(self, source: HasFileno, events: int, callback: Callback) -> None:
        """Call whenever `source` is ready for `events`; replaces an earlier callback of `source`."""
        if source.fileno() in self._selector.get_map():
            self._selector.modify(source, events, callback)
        else:
            self._selector.register(source, events, callback)

    def forget(self, source: HasFileno) -> None:
        """Stop watching; idempotent while the source is open, and without effect after `run`."""
        watched = self._selector.get_map()
        if watched and source.fileno() in watched:
            self._selector.unregister(source)

    def stop(self) -> None:
        """Make `run` return after the present callback."""
        self._stopped = True

    def run(self) -> None:
        """Serve until `stop`."""
        while not self._stopped:
            timeout_s = None
            if self._calls:
                timeout_s = max(0, self._calls[0][0] - self.refresh()) / 1e9
            ready = self._selector.select(timeout_s)
            # calls first: a count at a time must not include data read after it
            now = self.refresh()
            while self._calls and self._calls[0][0] <= now and not self._stopped:
                _, _, _, call, argument = heapq.heappop(self._calls)
                call(argument)
                self.refresh()
            for key, _ in ready:
                # an earlier callback of this turn may have closed it
                if not self._stopped and self._selector.get_map().get(key.fd) is key:
                    key.data()
                    self.refresh()
        self._selector.close()
