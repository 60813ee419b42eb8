"""Virtual time: the queue of events.

Rules kept here: events happen in the order (time, priority, insertion), so that a run is the same on every machine. An
event cannot be cancelled: a timer that has moved notices it at its event, and sets another.

The queue is a heap. Interpreted, it is `heapq` over tuples; compiled, native events, which are used again and again,
in a heap of our own.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from mypy_extensions import i64
from typing_extensions import override

from common.compiled import IS_COMPILED
from hosts.engine.clock import NETWORK, Clock
from hosts.engine.packets import Taker, taker

#: the order of two events of one time: priority, then insertion
_PRIORITY: Final = 1 << 60
_LAST: Final = 0x3FFF_FFFF_FFFF_FFFF
_COMPILED: Final = IS_COMPILED


class _Event:
    __slots__ = ("order", "packet", "time", "to")

    def __init__(self, time: i64, order: i64, to: Taker, packet: Any) -> None:
        self.time = time
        self.order = order
        self.to = to
        self.packet = packet


class _Heap:
    """Native events; the first is the next."""

    __slots__ = ("_events", "_free")

    def __init__(self) -> None:
        self._events: list[_Event] = []
        #: events that have happened
        self._free: list[_Event] = []

    def push(self, time: i64, order: i64, to: Taker, packet: Any) -> None:
        events, free = self._events, self._free
        if free:
            event = free.pop()
            event.time = time
            event.order = order
            event.to = to
            event.packet = packet
        else:
            event = _Event(time, order, to, packet)
        i: i64 = len(events)
        events.append(event)
        self._rise(event, i)

    def _rise(self, event: _Event, i: i64) -> None:
        """Put an event in its place, at `i` or nearer to the first."""
        events = self._events
        time, order = event.time, event.order
        while i > 0:
            parent = (i - 1) >> 1
            above = events[parent]
            if above.time < time or (above.time == time and above.order < order):
                break
            events[i] = above
            i = parent
        events[i] = event

    def pop(self, until: i64) -> _Event | None:
        """Take the next event out, unless it is later than `until`; `release` it afterwards."""
        events = self._events
        if not events or events[0].time > until:
            return None
        last = events.pop()
        end: i64 = len(events)
        if end == 0:
            return last
        first = events[0]
        i: i64 = 0
        # the way of the smaller child, down to a leaf: the last event nearly always belongs there
        child: i64 = 1
        while child < end:
            below = events[child]
            if child + 1 < end:
                beside = events[child + 1]
                if beside.time < below.time or (beside.time == below.time and beside.order < below.order):
                    child += 1
                    below = beside
            events[i] = below
            i = child
            child = 2 * i + 1
        self._rise(last, i)
        return first

    def release(self, event: _Event) -> None:
        """Keep an event for the next `push`."""
        event.packet = None
        self._free.append(event)


class VirtualClock(Clock):
    """The time `now`, in ns since the clock was made, and the events ahead."""

    __slots__ = ("_count", "_events", "_heap", "_stopped")

    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Taker, Any]] = []
        self._heap = _Heap()
        self._count = 0
        self._stopped = False

    @property
    def scheduled(self) -> int:
        """Number of events so far, those ahead included."""
        return self._count

    @override
    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = NETWORK) -> None:
        self._push(time, priority * _PRIORITY, taker(call), argument)

    @override
    def give(self, time: int, to: Taker, packet: Any) -> None:
        """Schedule a delivery. Raises ValueError for a time in the past."""
        if time < self.now:
            raise ValueError(f"time is {time}, now is {self.now}: an event cannot lie in the past")
        self._count = count = self._count + 1
        if _COMPILED:
            self._heap.push(time, count, to, packet)
        else:
            heappush(self._events, (time, count, to, packet))

    def _push(self, time: int, order: int, to: Taker, packet: Any) -> None:
        if time < self.now:
            raise ValueError(f"time is {time}, now is {self.now}: an event cannot lie in the past")
        self._count = count = self._count + 1
        if _COMPILED:
            self._heap.push(time, order + count, to, packet)
        else:
            heappush(self._events, (time, order + count, to, packet))

    def run(self, until: int | None = None) -> None:
        """Run all events, or those up to and at `until`; `stop` ends the run earlier.

        Afterwards `now` is `until`; after `stop`, or without `until`, it is the time of the last event.
        """
        self._stopped = False
        if _COMPILED:
            self._run_native(_LAST if until is None else until)
        else:
            self._run_tuples(until)
        if until is not None and not self._stopped and until > self.now:
            self.now = until

    def _run_native(self, until: i64) -> None:
        heap = self._heap
        while not self._stopped:
            event = heap.pop(until)
            if event is None:
                break
            self.now = event.time
            event.to.take(event.packet)
            heap.release(event)

    def _run_tuples(self, until: int | None) -> None:
        events = self._events
        while events and not self._stopped:
            if until is not None and events[0][0] > until:
                break
            self.now, _, to, packet = heappop(events)
            to.take(packet)

    def stop(self) -> None:
        """End `run` after the present event."""
        self._stopped = True
