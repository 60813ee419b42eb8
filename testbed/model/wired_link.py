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

from mypy_extensions import i64

from channel.errors import INTACT, ErrorModel, Fate
from hosts.engine.clock import Alarm, Clock, Sleeper
from hosts.engine.packets import Deliver, Taker, taker
from linklayer.queues import Queue
from tcpip.segment import IpPacket

_SECOND_NS: Final = 1_000_000_000


class Wire(Taker, Sleeper):
    """Carries packets to `deliver`, which gets each `delay_ns` after the packet's last bit has left.

    `rate_bps` None: infinitely fast. `queue` holds the packets behind the one being sent; None: a queue without limit.
    `errors` None: a wire without errors. Raises ValueError for an impossible rate or delay.
    """

    __slots__ = (
        "_alarm",
        "_byte_work",
        "_clock",
        "_delay_ns",
        "_errors",
        "_free",
        "_free_part",
        "_queue",
        "_rate",
        "_to",
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
        self._clock, self._to = clock, taker(deliver)
        # an octet takes `_byte_work / _rate` ns, in lowest terms; 0 on an infinitely fast wire
        common = 1 if rate_bps is None else gcd(8 * _SECOND_NS, rate_bps)
        self._rate: i64 = 1 if rate_bps is None else rate_bps // common
        self._byte_work: i64 = 0 if rate_bps is None else 8 * _SECOND_NS // common
        self._delay_ns: i64 = delay_ns
        self._queue = queue
        self._errors = errors
        #: exact time at which the transmitter is free: whole ns, and a part of one in units of 1 / `_rate`
        self._free: i64 = 0
        self._free_part: i64 = 0
        #: whether a wakeup is set that takes the next packet from the queue
        self._waking = False
        self._alarm = Alarm(self)
        #: packets sent, their octets, and the packets lost on the wire
        self.packets = 0
        self.nbytes = 0
        self.corrupted = 0

    @property
    def congestion_drops(self) -> int:
        """Packets lost in the queue."""
        return 0 if self._queue is None else self._queue.drops

    def take(self, packet: IpPacket) -> None:
        """Take a packet: send it, queue it, or let the queue drop it."""
        now: i64 = self._clock.now
        queue = self._queue
        if queue is None:
            if now > self._free:
                self._free, self._free_part = now, 0
            self._transmit(packet)
        elif queue.push(packet, now) and not self._waking:
            if now < self._free or (now == self._free and self._free_part):
                self._wake_when_free()
            else:
                self._free, self._free_part = now, 0
                self._send_next()

    def _transmit(self, packet: IpPacket) -> None:
        """Put a packet on the wire, as soon as the transmitter is free."""
        nbytes = packet.nbytes
        start, rate = self._free, self._rate
        work: i64 = self._free_part + nbytes * self._byte_work
        if rate == 1:
            left_at = self._free = start + work
        else:
            left_at = self._free = start + work // rate
            self._free_part = work % rate
            if self._free_part:
                left_at += 1
        self.packets += 1
        self.nbytes += nbytes
        if self._errors is not None:
            verdict = self._errors.judge(start, left_at, nbytes)
            if verdict is not INTACT and verdict.fate is not Fate.INTACT:
                self.corrupted += 1
                return
        self._clock.give(left_at + self._delay_ns, self._to, packet)

    def _wake_when_free(self) -> None:
        self._waking = True
        self._clock.give(self._free + (1 if self._free_part else 0), self._alarm, 0)

    def wake(self, at: int) -> None:
        """Send the next packet of the queue: the transmitter is free now."""
        self._waking = False
        self._send_next()

    def _send_next(self) -> None:
        queue = self._queue
        assert queue is not None
        packet = queue.pop(self._clock.now)
        if packet is None:
            # active queue management may have dropped the rest
            return
        self._transmit(packet)  # type: ignore[arg-type]
        if queue.nbytes:
            self._wake_when_free()


class Router(Taker):
    """Passes each packet to the route of its destination. Routes may be added at any time."""

    def __init__(self, routes: Mapping[int, Deliver] | None = None) -> None:
        self.routes: dict[int, Taker] = {address: taker(route) for address, route in (routes or {}).items()}

    def take(self, packet: IpPacket) -> None:
        """Pass on one packet. Raises KeyError for a destination without a route."""
        self.routes[packet.flow.destination].take(packet)
