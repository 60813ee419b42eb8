"""Queues: where packets wait for a link that is busy or does not want one yet.

Read first: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", ToN 1993, section IV;
RFC 3168 sections 5 and 7 (ECN); RFC 8289 (CoDel).

Rules kept here:

- A packet is counted by `len()`, the octets of the whole IP packet, and marked through its `ecn` attribute: the ECN
  field of its IP header. A packet that is NOT_ECT, or has no such attribute (octets), is dropped in its place.
- A packet leaves as it came but for CE, in the order it came.
- Whatever is lost in a queue is lost by congestion; `drops` counts all of it.

Left out: thresholds in bytes, RED's wait between two drops, flow queues (FQ-CoDel).
"""

from collections import deque
from collections.abc import Sized
from math import isqrt
from random import Random
from typing import Protocol

#: the ECN field (RFC 3168 section 5)
NOT_ECT, CE = 0, 3

MS = 1_000_000
_NO_LIMIT = 1 << 62


class Queue(Protocol):
    """What every queue offers. `len()` is the number of packets waiting."""

    #: octets waiting
    nbytes: int
    #: packets lost here, those that did not fit among them
    drops: int
    #: packets sent on with CE
    marks: int

    def __len__(self) -> int: ...

    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet that has come at `now` (ns); return False, and count it, when it is dropped."""

    def pop(self, now: int) -> Sized | None:
        """Take the next packet at `now` (ns), or return None when there is none (any more)."""


class DropTail:
    """A FIFO of at most `limit_bytes` and at most `limit_packets` (one of them may be None): what does not fit is lost.

    Raises ValueError without any limit, or with one below 1.
    """

    __slots__ = ("_limit_bytes", "_limit_packets", "_packets", "drops", "marks", "nbytes")

    def __init__(self, limit_bytes: int | None = None, limit_packets: int | None = None) -> None:
        if limit_bytes is None and limit_packets is None:
            raise ValueError("a queue needs limit_bytes, limit_packets or both")
        for name, limit in (("limit_bytes", limit_bytes), ("limit_packets", limit_packets)):
            if limit is not None and limit < 1:
                raise ValueError(f"{name} is {limit}: must be more than 0")
        self._limit_bytes = _NO_LIMIT if limit_bytes is None else limit_bytes
        self._limit_packets = _NO_LIMIT if limit_packets is None else limit_packets
        self._packets: deque[Sized] = deque()
        self.nbytes = 0
        self.drops = 0
        self.marks = 0

    def __len__(self) -> int:
        return len(self._packets)

    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet; return False, and count it, when there is no room."""
        packets = self._packets
        nbytes = self.nbytes + len(packet)
        if nbytes > self._limit_bytes or len(packets) >= self._limit_packets:
            self.drops += 1
            return False
        packets.append(packet)
        self.nbytes = nbytes
        return True

    def pop(self, now: int) -> Sized | None:
        """Take the oldest packet, or return None."""
        if not self._packets:
            return None
        packet = self._packets.popleft()
        self.nbytes -= len(packet)
        return packet

    def _mark(self, packet: Sized) -> bool:
        """Set CE on a packet that may carry it; return whether it may."""
        if getattr(packet, "ecn", NOT_ECT) == NOT_ECT:
            return False
        packet.ecn = CE  # type: ignore[attr-defined]
        self.marks += 1
        return True


class Red(DropTail):
    """Random early detection: the longer the average queue, the likelier an arriving packet is marked or dropped.

    `average` (packets) moves by `weight` towards the length that each arrival finds; with weight 1 it is that length.
    While nothing waits it decays as if packets of `packet_time_ns` (one packet's time on the link) had passed.

    | average | an arrival is notified |
    |---|---|
    | below `min_threshold` | never |
    | up to `max_threshold` | with a probability that grows from 0 to `max_p`, at uniform gaps |
    | above | always; with `gentle`, with a probability that grows from `max_p` to 1 at twice `max_threshold` |

    Notified means marked CE if the packet can be, otherwise dropped. From `max_threshold` on a notified packet is
    dropped even if it could be marked (RFC 3168 section 7), unless `mark_above` is set: with that, weight 1 and
    `min_threshold` = `max_threshold` below the limit, marking is deterministic, as COHERENCE has it.
    Raises ValueError when an option is out of range.
    """

    __slots__ = (
        "_count",
        "_gentle",
        "_idle_since",
        "_mark_above",
        "_max_p",
        "_max_threshold",
        "_min_threshold",
        "_packet_time_ns",
        "_rng",
        "_weight",
        "average",
    )

    def __init__(
        self,
        rng: Random,
        min_threshold: float,
        max_threshold: float,
        *,
        limit_bytes: int | None = None,
        limit_packets: int | None = None,
        max_p: float = 0.1,
        weight: float = 0.002,
        packet_time_ns: int | None = None,
        gentle: bool = False,
        mark_above: bool = False,
    ) -> None:
        super().__init__(limit_bytes, limit_packets)
        if not 0 <= min_threshold <= max_threshold:
            raise ValueError(f"RED thresholds are {min_threshold} and {max_threshold}: must be 0 <= min <= max")
        if not 0 < max_p <= 1:
            raise ValueError(f"max_p is {max_p}: must be more than 0 and at most 1")
        if not 0 < weight <= 1:
            raise ValueError(f"weight is {weight}: must be more than 0 and at most 1")
        if weight < 1 and (packet_time_ns is None or packet_time_ns < 1):
            raise ValueError("packet_time_ns must be one packet's time on the link, more than 0, unless weight is 1")
        if gentle and max_threshold == 0:
            raise ValueError("max_threshold is 0: gentle needs more")
        self._rng = rng
        self._min_threshold = min_threshold
        self._max_threshold = max_threshold
        self._max_p = max_p
        self._weight = weight
        self._packet_time_ns = packet_time_ns or 1
        self._gentle = gentle
        self._mark_above = mark_above
        #: arrivals since the last notification; -1 below the lower threshold
        self._count = -1
        self._idle_since = 0
        #: the average queue, packets
        self.average = 0.0

    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet, which may get CE; return False, and count it, when it is dropped."""
        packets = self._packets
        waiting = len(packets)
        if self._weight == 1:
            average = self.average = float(waiting)
        elif waiting:
            average = self.average = self.average + self._weight * (waiting - self.average)
        else:
            passed = (now - self._idle_since) / self._packet_time_ns
            average = self.average = self.average * (1 - self._weight) ** passed
            self._idle_since = now
        nbytes = self.nbytes + len(packet)
        if nbytes > self._limit_bytes or waiting >= self._limit_packets:
            self.drops += 1
            self._count = 0
            return False
        if average < self._min_threshold:
            self._count = -1
        elif self._notifies(average):
            self._count = 0
            if (average >= self._max_threshold and not self._mark_above) or not self._mark(packet):
                self.drops += 1
                return False
        packets.append(packet)
        self.nbytes = nbytes
        return True

    def pop(self, now: int) -> Sized | None:
        """Take the oldest packet, or return None."""
        packets = self._packets
        if not packets:
            return None
        packet = packets.popleft()
        self.nbytes -= len(packet)
        if not packets:
            self._idle_since = now
        return packet

    def _notifies(self, average: float) -> bool:
        """Draw whether an arrival at an average of `min_threshold` or more is notified."""
        most = self._max_threshold
        if average < most:
            probability = self._max_p * (average - self._min_threshold) / (most - self._min_threshold)
        elif self._gentle:
            probability = self._max_p + (1 - self._max_p) * (average - most) / most
        else:
            return True
        self._count += 1
        # Figure 2 of the paper: gaps between notifications are uniform, not geometric.
        spent = self._count * probability
        return spent >= 1 or self._rng.random() < probability / (1 - spent)


class CoDel(DropTail):
    """Controlled delay: once packets have waited longer than `target_ns` for a whole `interval_ns`, notify one, and
    sooner and sooner further ones, until they do not.

    Notified means marked CE if the packet can be, otherwise dropped. No packet is while `mtu_bytes` or less are left
    behind it. Raises ValueError when an option is out of range.
    """

    __slots__ = (
        "_above_at",
        "_arrivals",
        "_count",
        "_dropping",
        "_interval_ns",
        "_last_count",
        "_mtu_bytes",
        "_next_at",
        "_target_ns",
    )

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        limit_packets: int | None = None,
        target_ns: int = 5 * MS,
        interval_ns: int = 100 * MS,
        mtu_bytes: int = 1500,
    ) -> None:
        super().__init__(limit_bytes, limit_packets)
        for name, value in (("target_ns", target_ns), ("interval_ns", interval_ns), ("mtu_bytes", mtu_bytes)):
            if value < 1:
                raise ValueError(f"{name} is {value}: must be more than 0")
        self._target_ns = target_ns
        self._interval_ns = interval_ns
        self._mtu_bytes = mtu_bytes
        #: when each waiting packet came
        self._arrivals: deque[int] = deque()
        self._dropping = False
        #: when the wait will have been too long for an interval; None: it is not too long
        self._above_at: int | None = None
        #: when the next packet is notified, while dropping
        self._next_at = 0
        #: notifications since dropping began, and what that began with
        self._count = self._last_count = 0

    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet; return False, and count it, when there is no room."""
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
                if not marked:
                    self.drops += 1
                    packet, too_long = self._take(now)
                    self._dropping = too_long
                if self._dropping:
                    self._next_at = self._after(self._next_at)
                if marked:
                    break
        elif too_long:
            assert packet is not None
            if not self._mark(packet):
                self.drops += 1
                packet, _ = self._take(now)
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
