"""DualPI2: two queues with one controller, so that scalable flows wait hardly at all beside classic ones (RFC 9332).

Read first: RFC 9332 section 2 and appendix A (the pseudocode, whose names are used here); RFC 9331 (ECT(1)).

Rules kept

- A packet with ECT(1) or CE waits in the queue L, any other in C (section 2.3). Packets of one flow and one queue leave
  in the order they came.
- A PI controller follows the wait in C, or that in L where it is longer (appendix A.2). Its output p' is the base of
  both: C drops, or marks ECT(0), with p'^2, and L marks with k p' at least (the coupling), and all that waits longer
  than a step, while a packet is behind it.
- L goes first. C has a share of the link nevertheless, as in Linux's scheduler.
- Overload (appendix A.2): once k p' has reached 1, L drops with p'^2, too; once p'^2 has reached 1/k^2, C drops what it
  would have marked.
- No packet is dropped while less than two of the largest are left: Linux's rule. Without it a link that takes a second
  to send a packet loses each single one.
- Likelihoods are exact, as in appendix A.1's `recur`: no packet is marked by chance.

The controller runs every `update_ms` without a timer of its own: each arrival and each departure makes up for the
updates since the last one. What waited in between is known.
"""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Gt, Lt

from common.options import Positive
from common.units import SECOND, ns
from linklayer.queues import Queue, QueueContext, QueuePlugin
from linklayer.queues.drop_tail import DropTailOptions
from tcpip.access import ecn_of
from tcpip.segment import CE, ECT1

_NEVER: Final = 1 << 61


@dataclass(frozen=True, kw_only=True)
class DualPi2Options(DropTailOptions):
    """The controller and the coupling, with the values of appendix A.1 and of Linux (tc-dualpi2(8)).

    They are for round trips up to 100 ms. Limits are those of both queues together.
    """

    #: wait that the controller aims at
    target_ms: Positive = 15
    #: Tupdate: between two updates of the controller; appendix A.1: min(target, RTT_max / 3)
    update_ms: Positive = 16
    #: integral and proportional gain, 1/s; appendix A.1: 0.1 Tupdate / RTT_max^2 and 0.3 / RTT_max
    alpha_hz: Positive = 0.16
    beta_hz: Positive = 3.2
    #: k: L's likelihood over the root of C's
    coupling: Annotated[float, Ge(1)] = 2
    #: L marks what has waited longer
    step_ms: Positive = 1
    #: share of the link's octets that C has while both wait (Linux: classic_protection)
    classic_share: Annotated[float, Gt(0), Lt(1)] = 0.1


class _Half:
    """One of the two queues: packets and when they came, and `recur`."""

    def __init__(self) -> None:
        self.packets: deque[tuple[int, Sized]] = deque()
        self._count = 0.0

    def recurs(self, likelihood: float) -> bool:
        """Whether it is the turn of this packet, with a share `likelihood` of all packets."""
        self._count += likelihood
        if self._count > 1:
            self._count -= 1
            return True
        return False


class DualPi2(Queue):
    """L and C. `p` is p', `p_c` and `p_cl` are what C and L derive from it.

    `limit_packets` and the limit in octets may be None, but not both. Raises ValueError without any.
    """

    def __init__(self, options: DualPi2Options, context: QueueContext) -> None:
        super().__init__()
        if context.limit_bytes is None and options.limit_packets is None:
            raise ValueError("a queue needs limit_bytes, limit_packets or both")
        self._limit_bytes = _NEVER if context.limit_bytes is None else context.limit_bytes
        self._limit_packets = _NEVER if options.limit_packets is None else options.limit_packets
        self._target_ns, self._update_ns = ns(options.target_ms), ns(options.update_ms)
        self._step_ns = ns(options.step_ms)
        self._least_left = 2 * context.mtu_bytes
        self._alpha, self._beta = options.alpha_hz, options.beta_hz
        self._k = options.coupling
        self._p_c_max = min(1 / (options.coupling * options.coupling), 1.0)
        #: octets of C for each of L, while both wait, and those that C may send now
        self._classic_ratio = options.classic_share / (1 - options.classic_share)
        self._credit = 0.0
        self._l = _Half()
        self._c = _Half()
        self.p = self.p_c = self.p_cl = 0.0
        #: the wait at the last update (ns)
        self._prevq = 0
        self._update_at = self._update_ns

    def __len__(self) -> int:
        return len(self._l.packets) + len(self._c.packets)

    def push(self, packet: Sized, now: int) -> bool:
        self._catch_up(now)
        nbytes = self.nbytes + len(packet)
        if nbytes > self._limit_bytes or len(self) >= self._limit_packets:
            self.drops += 1
            return False
        half = self._l if ecn_of(packet) in (ECT1, CE) else self._c
        half.packets.append((now, packet))
        self.nbytes = nbytes
        return True

    def pop(self, now: int) -> Sized | None:
        """Take the next packet, which may get CE; packets dropped on the way to it are counted."""
        self._catch_up(now)
        while len(self):
            is_low = self._is_l_next()
            half = self._l if is_low else self._c
            came_at, packet = half.packets.popleft()
            self.nbytes -= len(packet)
            found = self._through_l(packet, now - came_at) if is_low else self._through_c(packet)
            if found is not None:
                return found
            self._drop_waiting(packet, now)
        return None

    def _through_l(self, packet: Sized, wait_ns: int) -> Sized | None:
        """Return a packet of L, marked or not; None: it is dropped."""
        if self.p_cl >= 1 and self.nbytes >= self._least_left and self._l.recurs(self.p_c):
            return None
        stepped = wait_ns > self._step_ns and bool(self._l.packets)
        # the larger of both likelihoods, of which the step's is 0 or 1
        return self._mark(packet) if stepped or self._l.recurs(min(self.p_cl, 1.0)) else packet

    def _through_c(self, packet: Sized) -> Sized | None:
        """Return a packet of C, marked or not; None: it is dropped."""
        if not self._c.recurs(self.p_c):
            return packet
        if self.nbytes < self._least_left:
            return self._mark(packet) or packet
        return None if self.p_c >= self._p_c_max else self._mark(packet)

    def _is_l_next(self) -> bool:
        """Choose a queue, one of which has packets."""
        low, classic = self._l.packets, self._c.packets
        if not classic:
            self._credit = 0.0
            return True
        size = len(classic[0][1])
        if not low or self._credit >= size:
            self._credit = max(self._credit - size, 0.0)
            return False
        self._credit += len(low[0][1]) * self._classic_ratio
        return True

    def _catch_up(self, now: int) -> None:
        """Make the updates that were due since the last event (dualpi2_update)."""
        while self._update_at <= now:
            oldest = min((half.packets[0][0] for half in (self._l, self._c) if half.packets), default=self._update_at)
            curq = self._update_at - oldest
            if not len(self) and not self._prevq and self.p == 0.0:
                # nothing changes until a packet comes
                self._update_at += ((now - self._update_at) // self._update_ns + 1) * self._update_ns
                continue
            change = self._alpha * (curq - self._target_ns) + self._beta * (curq - self._prevq)
            self.p = min(max(self.p + change / SECOND, 0.0), 1.0)
            self.p_cl = self._k * self.p
            self.p_c = self.p * self.p
            self._prevq = curq
            self._update_at += self._update_ns


QUEUE = QueuePlugin(
    name="dualpi2",
    summary="queued by its ECN field; ECT(1) goes first and is marked early, coupled to what the rest loses (RFC 9332)",
    options=DualPi2Options,
    make=DualPi2,
    example={"target_ms": 2},
)
