"""Prague: a window that shrinks by the share of marks, for bottlenecks that mark early and much (L4S).

Read first: draft-briscoe-iccrg-prague-congestion-control-04 (July 2024); RFC 9331 section 4 (the demands of L4S on a
sender); RFC 8257 (DCTCP, from which it is derived); `hosts/tcp/accecn.py` for the marks.

Rules: data is ECT(1). The share of marked octets of each virtual round trip goes into a moving average `alpha`, of gain
1/16. A mark takes alpha/2 of the window, once per virtual round trip at most (section 2.4.2); the first of all marks
sets alpha to 1. Octets without marks open the window, as in Reno, fractions of octets included. A virtual round trip is
25 ms at least: once the flow has gone on for a while, one of a shorter round trip opens its window by the square of
their ratio, and so has the rate of a flow at 25 ms (section 2.4.4). Segments are paced at a window per round trip, in
bursts of 250 us; in slow start at twice that, but for its last round trip. A loss or a timeout is Reno's.

Where accurate ECN is not agreed this is Reno, with ECT(0) where RFC 3168 is, and says so (`fallback`).

Choices: windows of two segments at least. Slow start's last round trip begins at half of ssthresh, as in Linux, the
draft's reference implementation, so that its end comes without a burst.

Left out: smaller windows; the detection of classic ECN at a bottleneck with one queue, which the draft keeps off.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge

from common.options import Positive
from common.units import SECOND, ns
from hosts.tcp.growth import Growth, GrowthPlugin
from hosts.tcp.send_state import SendState
from tcpip.segment import ECT0, ECT1

#: g, the gain of the moving average
GAIN: Final = 1 / 16
#: bursts of that time at the pacing rate
_BURST_US: Final = 250
_LEAST_SEGMENTS: Final = 2


@dataclass(frozen=True, kw_only=True)
class PragueOptions:
    """The virtual round trip."""

    #: the shortest virtual round trip (RTT_virt)
    least_rtt_ms: Positive = 25
    #: round trips until a flow opens its window by the virtual one
    independent_after: Annotated[int, Ge(0)] = 500


class Prague(Growth):
    """Prague's window, pacing rate and average of marks."""

    def __init__(self, sender: SendState, options: PragueOptions) -> None:
        super().__init__(sender)
        self._least_rtt_ns = ns(options.least_rtt_ms)
        self._independent_after = options.independent_after
        #: the moving average of the share of marks; below 0: there was none yet
        self.alpha = -1.0
        #: a part of an octet of the window
        self._part = 0.0
        #: octets acknowledged that may open the window
        self._credit = 0
        #: of the present virtual round trip: octets acknowledged and marked, its beginning (ns, -1: none has begun),
        #: and the octet whose acknowledgement ends the real one
        self._acked = self._marked = 0
        self._began_at = -1
        self._round_end = 0
        self._rounds = 0
        #: the latest reduction by marks (ns), and the octet behind those under way then
        self._reduced_at = -1
        self._recover = -1

    def start(self, cwnd: int, ssthresh: int) -> None:
        super().start(cwnd, ssthresh)
        self.scales = self._sender.accecn is not None
        self.ect = ECT1 if self.scales else ECT0
        if not self.scales:
            self.fallback = "prague was Reno, as accurate ECN was not agreed"
        self._pace()

    def handle_ack(self, acked: int, now: int) -> None:
        if self.scales:
            # `handle_marks` comes next
            self._credit += acked
        else:
            self._open(acked)
            self._pace()

    def handle_marks(self, acked: int, marked: int, now: int) -> None:
        credit, self._credit = self._credit, 0
        self._acked += acked
        self._marked += min(marked, acked)
        self._average(now)
        if marked and self.alpha < 0:
            self.alpha = 1.0
        self._open(max(credit - marked, 0))
        if marked:
            self._reduce(now)
        self._pace()

    def threshold(self, flight: int) -> int:
        return max(flight // 2, _LEAST_SEGMENTS * self._sender.full_smss)

    def hold(self, cwnd: int) -> None:
        super().hold(cwnd)
        self._pace()

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        super().handle_timeout(flight, cwnd, first=first, recovering=recovering)
        self._credit = 0
        self._pace()

    def _virtual_ns(self) -> int:
        return max(self._sender.rto.srtt_ns or 0, self._least_rtt_ns)

    def _average(self, now: int) -> None:
        """End a virtual round trip, if it is time."""
        sender = self._sender
        if self._began_at < 0:
            self._began_at, self._round_end = now, sender.max
        if sender.una < self._round_end or now - self._began_at < self._virtual_ns():
            return
        self._rounds += 1
        if self.alpha >= 0 and self._acked:
            self.alpha += GAIN * (self._marked / self._acked - self.alpha)
        self._acked = self._marked = 0
        self._began_at, self._round_end = now, sender.max

    def _open(self, acked: int) -> None:
        """Open the window for octets that were not marked."""
        if self.cwnd < self.ssthresh:
            self.cwnd += acked
            return
        sender = self._sender
        increase = float(sender.full_smss)
        if self.scales and self._rounds >= self._independent_after:
            ratio = (sender.rto.srtt_ns or 0) / self._virtual_ns()
            increase *= ratio * ratio
        self._part += increase * acked / self.cwnd
        opened = int(self._part)
        self._part -= opened
        self.cwnd += opened

    def _reduce(self, now: int) -> None:
        """Reduce the window by marks, once per virtual round trip at most."""
        sender = self._sender
        if self._reduced_at >= 0 and (sender.una < self._recover or now - self._reduced_at < self._virtual_ns()):
            return
        if sender.recovery.active:
            return
        sender.counters.ecn_reductions += 1
        window = max((self.cwnd + self._part) * (1 - self.alpha / 2), float(_LEAST_SEGMENTS * sender.full_smss))
        self.cwnd = int(window)
        self._part = window - self.cwnd
        self.ssthresh = self.cwnd
        self._reduced_at, self._recover = now, sender.max

    def _pace(self) -> None:
        srtt_ns = self._sender.rto.srtt_ns
        if not self.scales or not srtt_ns:
            return
        # the window doubles in a round trip, and half of ssthresh is one round trip before the end of slow start
        gain = 2 if self.cwnd < self.ssthresh // 2 else 1
        self.pacing_rate_bps = max(gain * 8 * self.cwnd * SECOND // srtt_ns, 1)
        self.send_quantum = self.pacing_rate_bps * _BURST_US // (8 * SECOND // 1000)


GROWTH = GrowthPlugin(
    name="prague",
    summary="Prague (draft-briscoe-iccrg-prague-congestion-control-04); Reno where accurate ECN is not agreed",
    make=Prague,
    options=PragueOptions,
)
