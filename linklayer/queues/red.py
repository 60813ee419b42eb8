"""RED: notify arrivals with a probability that follows the average queue.

Read first: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", ToN 1993, section IV; RFC
3168 section 7. Left out: the wait between two drops.
"""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Le

from common.options import NotNegative
from linklayer.queues import QueueContext, QueuePlugin
from linklayer.queues.drop_tail import DropTail, DropTailOptions


@dataclass(frozen=True, kw_only=True)
class RedOptions(DropTailOptions):
    """Random early detection; the thresholds are of the average queue, in packets."""

    min_packets: NotNegative = 5
    max_packets: NotNegative = 15
    max_p: Annotated[float, Gt(0), Le(1)] = 0.1
    #: of one arrival in the average; 1: the average is the queue that an arrival finds
    weight: Annotated[float, Gt(0), Le(1)] = 0.002
    #: above `max_packets` the probability grows to 1 at twice as many, and not at once
    gentle: bool = False
    #: mark above `max_packets`, too, where RFC 3168 has a packet dropped
    mark_above: bool = False

    def __post_init__(self) -> None:
        if self.min_packets > self.max_packets:
            raise ValueError(f"min_packets is {self.min_packets:g}: must be max_packets, {self.max_packets:g}, at most")
        if self.gentle and not self.max_packets:
            raise ValueError("max_packets is 0: gentle needs more")


class Red(DropTail):
    """Random early detection: the longer the average queue, the likelier an arriving packet is marked or dropped.

    `average` (packets) moves by `weight` towards the length that each arrival finds; with weight 1 it is that length.
    While nothing waits it decays as if packets had passed, one in each `packet_time_ns`.

    | average | an arrival is notified |
    |---|---|
    | below `min_packets` | never |
    | up to `max_packets` | with a probability that grows from 0 to `max_p`, at uniform gaps |
    | above | always; with `gentle`, with a probability that grows from `max_p` to 1 at twice `max_packets` |

    Notified means marked CE if the packet can be, otherwise dropped. From `max_packets` on a notified packet is
    dropped even if it could be marked (RFC 3168 section 7), unless `mark_above` is set: with that, weight 1 and
    `min_packets` = `max_packets` below the limit, marking is deterministic, as in COHERENCE.
    """

    def __init__(self, options: RedOptions, context: QueueContext) -> None:
        super().__init__(context.limit_bytes, options.limit_packets)
        self._rng = context.rng
        self._packet_time_ns = context.packet_time_ns
        self._min_threshold = options.min_packets
        self._max_threshold = options.max_packets
        self._max_p = options.max_p
        self._weight = options.weight
        self._gentle = options.gentle
        self._mark_above = options.mark_above
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
            marked = None if average >= self._max_threshold and not self._mark_above else self._mark(packet)
            if marked is None:
                self.drops += 1
                return False
            packet = marked
        packets.append(packet)
        self.nbytes = nbytes
        return True

    def pop(self, now: int) -> Sized | None:
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


QUEUE = QueuePlugin(
    name="red",
    summary="marked or lost with a probability that follows the average queue",
    options=RedOptions,
    make=Red,
    example={"min_packets": 3, "max_packets": 9, "weight": 0.3},
)
