"""CoDel: notify packets that leave after too long a wait (RFC 8289)."""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass
from math import isqrt

from common.options import Positive
from common.units import ns
from linklayer.queues import QueueContext, QueuePlugin
from linklayer.queues.drop_tail import DropTail, DropTailOptions


@dataclass(frozen=True, kw_only=True)
class CoDelOptions(DropTailOptions):
    """Controlled delay; RFC 8289 has the reasons for the defaults."""

    #: a wait that is short enough
    target_ms: Positive = 5
    #: about the longest round-trip time
    interval_ms: Positive = 100


class CoDel(DropTail):
    """Controlled delay: once packets have waited longer than `target_ms` for a whole `interval_ms`, notify one, and
    sooner and sooner further ones, until they do not.

    Notified means marked CE if the packet can be, otherwise dropped. No packet is while `mtu_bytes` or less are left
    behind it.
    """

    def __init__(self, options: CoDelOptions, context: QueueContext) -> None:
        super().__init__(context.limit_bytes, options.limit_packets)
        self._target_ns = ns(options.target_ms)
        self._interval_ns = ns(options.interval_ms)
        self._mtu_bytes = context.mtu_bytes
        #: when each waiting packet came
        self._arrivals: deque[int] = deque()
        self._dropping = False
        #: when the wait will have been too long for an interval; None: it is not too long
        self._above_at: int | None = None
        #: when the next packet is notified, while dropping
        self._next_at = 0
        #: notifications since dropping began, and the count it began with
        self._count = self._last_count = 0

    def push(self, packet: Sized, now: int) -> bool:
        if not super().push(packet, now):
            return False
        self._arrivals.append(now)
        return True

    def pop(self, now: int) -> Sized | None:
        """Take the next packet, which may get CE; packets dropped on the way to it are counted."""
        packet, too_long = self._take(now)
        if self._dropping:
            if not too_long:
                self._dropping = False
            while self._dropping and now >= self._next_at:
                self._count += 1
                assert packet is not None
                marked = self._mark(packet)
                if marked is None:
                    self._drop_waiting(packet, now)
                    packet, too_long = self._take(now)
                    self._dropping = too_long
                if self._dropping:
                    self._next_at = self._after(self._next_at)
                if marked is not None:
                    packet = marked
                    break
        elif too_long:
            assert packet is not None
            marked = self._mark(packet)
            if marked is None:
                self._drop_waiting(packet, now)
                packet, _ = self._take(now)
            else:
                packet = marked
            self._dropping = True
            # A queue that was controlled a moment ago goes on at about the rate that controlled it (section 5.5).
            delta = self._count - self._last_count
            recent = now - self._next_at < 16 * self._interval_ns
            self._count = self._last_count = delta if delta > 1 and recent else 1
            self._next_at = self._after(now)
        return packet

    def _take(self, now: int) -> tuple[Sized | None, bool]:
        """Take the oldest packet; return it, and whether the wait has been too long for an interval."""
        if not self._packets:
            self._above_at = None
            return None, False
        packet = self._packets.popleft()
        self.nbytes -= len(packet)
        if now - self._arrivals.popleft() < self._target_ns or self.nbytes <= self._mtu_bytes:
            self._above_at = None
            return packet, False
        if self._above_at is None:
            self._above_at = now + self._interval_ns
            return packet, False
        return packet, now >= self._above_at

    def _after(self, at: int) -> int:
        """Return when to notify after `at`: interval / sqrt(count) later, rounded down to a whole ns."""
        return at + isqrt(self._interval_ns * self._interval_ns // self._count)


QUEUE = QueuePlugin(
    name="codel",
    summary="marked or lost as it leaves, when packets have waited too long for an interval",
    options=CoDelOptions,
    make=CoDel,
    example={"target_ms": 2, "interval_ms": 20},
)
