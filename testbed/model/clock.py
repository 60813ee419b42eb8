"""Virtual time: the queue of events.

Rules kept here: events happen in the order (time, priority, insertion), so that a run is the same on every machine. An
event cannot be cancelled: a timer that has moved notices it at its event, and sets another.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from hosts.engine.clock import NETWORK, Clock


class VirtualClock(Clock):
    """The time `now`, in ns since the clock was made, and the events ahead."""

    __slots__ = ("_count", "_events", "_stopped")

    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, int, Callable[[Any], object], Any]] = []
        self._count = 0
        self._stopped = False

    @property
    def scheduled(self) -> int:
        """Number of events so far, those ahead included."""
        return self._count

    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = NETWORK) -> None:
        """See Clock. Raises ValueError for a time in the past."""
        if time < self.now:
            raise ValueError(f"time is {time}, now is {self.now}: an event cannot lie in the past")
        self._count = count = self._count + 1
        heappush(self._events, (time, priority, count, call, argument))

    def run(self, until: int | None = None) -> None:
        """Run all events, or those up to and at `until`; `stop` ends the run earlier.

        Afterwards `now` is `until`; after `stop`, or without `until`, it is the time of the last event.
        """
        self._stopped = False
        events = self._events
        while events and not self._stopped:
            if until is not None and events[0][0] > until:
                break
            self.now, _, _, call, argument = heappop(events)
            call(argument)
        if until is not None and not self._stopped and until > self.now:
            self.now = until

    def stop(self) -> None:
        """End `run` after the present event."""
        self._stopped = True
