"""Linux's CUBIC, with HyStart: slow start ends when the queue begins to grow, not when it overflows.

Read first: `cubic.py`; S. Ha and I. Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011,
sections 3 and 4.

Linux differs from RFC 9438 in one thing that shows: the Reno that CUBIC is at least as fast as opens its window by 0.53
segments per round trip throughout, as in RFC 8312, and not by 1 from the window before the last reduction on. Where
losses keep windows small that is 4 to 13 % of the goodput (docs/tcp.md).

Two signs end slow start, from 16 segments on. The shortest of a round's first round-trip times is longer than the
shortest of the connection by an eighth of that, 4 ms at least and 16 at most: a queue grows. Or the ACKs of a round
have come for half of a round trip without a pause: the link is full. The paper measures a round by the one before;
here, as in Linux, by the shortest round trip so far.

Left out: HyStart++ (RFC 9406), which hears the first sign only, and goes on for some rounds to see whether it holds.
"""

from typing import Final

from common.units import MS
from hosts.tcp.growth import GrowthPlugin
from hosts.tcp.growth.cubic import Cubic, CubicOptions
from hosts.tcp.send_state import INFINITE, SendState

#: segments of the smallest window that is left
_LEAST_WINDOW: Final = 16
#: round-trip times of a round that are compared
_SAMPLES: Final = 8
#: the increase that is none yet: its bounds, and its part of a round trip
_LEAST_NS: Final = 4 * MS
_MOST_NS: Final = 16 * MS
_PART: Final = 8
#: ACKs further apart are no train
_APART_NS: Final = 2 * MS


class LinuxCubic(Cubic):
    """CUBIC's window, and an end of slow start by the times of ACKs."""

    def __init__(self, sender: SendState, options: CubicOptions) -> None:
        super().__init__(sender, options)
        self._regained = self._alpha
        #: slow start has ended by a sign since the last timeout
        self._found = False
        #: the shortest round trip since the last timeout (ns)
        self._shortest_ns = INFINITE
        #: the round: the octet whose acknowledgement ends it, its beginning, the last ACK of its train (ns), its
        #: shortest round trip (ns) and how many there were, up to `_SAMPLES`
        self._round_end = -1
        self._round_at = self._last_at = 0
        self._round_ns = INFINITE
        self._samples = 0

    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window, in slow start if there is no sign to end it."""
        if self.cwnd < self.ssthresh and not self._found and self._full(now):
            self._found = True
            self.ssthresh = self.cwnd
        super().handle_ack(acked, now)

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """Begin anew: the path may be another one."""
        super().handle_timeout(flight, cwnd, first=first, recovering=recovering)
        self._found = False
        self._shortest_ns = INFINITE

    def _full(self, now: int) -> bool:
        """Whether an ACK tells that the window has filled the path."""
        sender = self._sender
        if sender.una > self._round_end:
            self._round_end = sender.max
            self._round_at = self._last_at = now
            self._round_ns = INFINITE
            self._samples = 0
        rtt_ns = sender.rto.latest_ns
        if rtt_ns is None:
            return False
        self._shortest_ns = shortest_ns = min(self._shortest_ns, rtt_ns)
        self._round_ns = min(self._round_ns, rtt_ns)
        if self.cwnd < _LEAST_WINDOW * sender.full_smss:
            return False
        if now - self._last_at <= _APART_NS:
            self._last_at = now
            if now - self._round_at > shortest_ns // 2:
                return True
        if self._samples < _SAMPLES:
            self._samples += 1
            return False
        return self._round_ns > shortest_ns + min(max(shortest_ns // _PART, _LEAST_NS), _MOST_NS)


GROWTH = GrowthPlugin(
    name="cubic-linux",
    summary="CUBIC as in Linux: HyStart, RFC 8312's Reno",
    make=LinuxCubic,
    options=CubicOptions,
)
