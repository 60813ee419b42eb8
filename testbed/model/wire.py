"""A wired link in virtual time, one direction; and a router.

Rules kept here:

- Times are exact: n packets back to back take their exact time, rounded up to a whole ns once (as `channel/hop.py`).
- The fates of packets are decided in the order of sending, by the times of their first and last bit. A damaged packet
  is lost: a wire has a frame check.
- Every packet goes through the queue, also when the wire is free, since active queue management must see all packets.
- Few events: one per packet that finds the wire free, two per packet that waits in a queue.
"""

from collections.abc import Mapping
from math import gcd
from typing import Final

from channel.errors import INTACT, ErrorModel, Fate
from hosts.engine.clock import Clock
from hosts.engine.packets import Deliver, Packet
from linklayer.queues import Queue

_SECOND_NS: Final = 1_000_000_000


class Wire:
    """Carries packets to `deliver`, which is called `delay_ns` after a packet's last bit has left.

    `rate_bps` None: infinitely fast. `queue` holds the packets behind the one being sent; None: a queue without limit.
    `errors` None: a wire without errors. Raises ValueError for an impossible rate or delay.
    """

    __slots__ = (
        "_at",
        "_byte_work",
        "_clock",
        "_delay_ns",
        "_deliver",
        "_free",
        "_judge",
        "_queue",
        "_rate",
        "_waking",
        "corrupted",
        "nbytes",
        "packets",
    )

    def __init__(
        self,
        clock: Clock,
        deliver: Deliver,
        *,
        rate_bps: int | None = None,
        delay_ns: int = 0,
        queue: Queue | None = None,
        errors: ErrorModel | None = None,
    ) -> None:
        if rate_bps is not None and rate_bps <= 0:
            raise ValueError(f"rate_bps is {rate_bps}: must be more than 0")
        if delay_ns < 0:
            raise ValueError(f"delay_ns is {delay_ns}: must not be negative")
        self._clock, self._at, self._deliver = clock, clock.at, deliver
        # an octet takes `_byte_work / _rate` ns, in lowest terms; 0 on an infinitely fast wire
        common = 1 if rate_bps is None else gcd(8 * _SECOND_NS, rate_bps)
        self._rate = 1 if rate_bps is None else rate_bps // common
        self._byte_work = 0 if rate_bps is None else 8 * _SECOND_NS // common
        self._delay_ns = delay_ns
        self._queue = queue
        self._judge = None if errors is None else errors.judge
        #: exact time at which the transmitter is free, in ns times the rate
        self._free = 0
        #: whether a wakeup is set that takes the next packet from the queue
        self._waking = False
        #: packets sent, their octets, and the packets lost on the wire
        self.packets = 0
        self.nbytes = 0
        self.corrupted = 0

    @property
    def congestion_drops(self) -> int:
        """Packets lost in the queue."""
        return 0 if self._queue is None else self._queue.drops

    def send(self, packet: Packet) -> None:
        """Take a packet: send it, queue it, or let the queue drop it."""
        now = self._clock.now
        rate, queue, free = self._rate, self._queue, self._free
        start = now * rate
        if queue is None:
            self._transmit(packet, start if start > free else free)
        elif queue.push(packet, now) and not self._waking:
            if start >= free:
                self._send_next(start)
            else:
                self._waking = True
                self._at(-(-free // rate), self._wake)

    def _transmit(self, packet: Packet, start: int) -> None:
        """Put a packet on the wire; times are in ns times the rate."""
        nbytes, rate = packet.nbytes, self._rate
        self._free = end = start + nbytes * self._byte_work
        self.packets += 1
        self.nbytes += nbytes
        left_at = -(-end // rate)
        if self._judge is not None:
            verdict = self._judge(start // rate, left_at, nbytes)
            if verdict is not INTACT and verdict.fate is not Fate.INTACT:
                self.corrupted += 1
                return
        self._at(left_at + self._delay_ns, self._deliver, packet)

    def _wake(self, _: object) -> None:
        """Send the next packet of the queue: the transmitter is free now."""
        self._waking = False
        self._send_next(self._free)

    def _send_next(self, start: int) -> None:
        queue = self._queue
        assert queue is not None
        packet = queue.pop(self._clock.now)
        if packet is None:
            # active queue management may have dropped the rest
            return
        self._transmit(packet, start)  # type: ignore[arg-type]
        if queue.nbytes:
            self._waking = True
            self._at(-(-self._free // self._rate), self._wake)


class Router:
    """Passes each packet to the route of its destination. Routes may be added at any time."""

    __slots__ = ("routes",)

    def __init__(self, routes: Mapping[int, Deliver] | None = None) -> None:
        self.routes: dict[int, Deliver] = dict(routes or {})

    def deliver(self, packet: Packet) -> None:
        """Pass on one packet. Raises KeyError for a destination without a route."""
        self.routes[packet.flow.destination](packet)
