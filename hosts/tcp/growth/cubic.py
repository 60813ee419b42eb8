"""CUBIC (RFC 9438): after a loss the window rises to where it was along a cubic of the time since, and then beyond.

Section numbers are RFC 9438's. Windows are in segments here, as there, and in octets in `cwnd`. Slow start is the
standard one, by the ACK or, with `byte_counting`, by the octet.

Left out: HyStart++ (section 4.10), and undoing a reduction that a spurious loss caused (section 4.9). `cubic_linux.py`
is the CUBIC of Linux, with HyStart.
"""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Lt
from mypy_extensions import mypyc_attr

from common.options import Positive
from common.units import SECOND
from hosts.tcp.growth import Growth, GrowthPlugin, SlowStartOptions
from hosts.tcp.send_state import SendState


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class CubicOptions(SlowStartOptions):
    """The shape of the cubic."""

    #: section 4.6: the part of the window that a loss leaves
    beta: Annotated[float, Gt(0), Lt(1)] = 0.7
    #: section 5: how steep the cubic is (segments per second cubed)
    c: Positive = 0.4
    #: windows in whole segments, rounded down, as Linux counts them
    whole_segments: bool = False


class Cubic(Growth):
    """CUBIC's congestion avoidance and decrease."""

    def __init__(self, sender: SendState, options: CubicOptions) -> None:
        super().__init__(sender)
        self._beta, self._c = options.beta, options.c
        #: section 4.3: the increase with which a Reno of this decrease is as fast as a Reno that halves
        self._alpha = 3 * (1 - options.beta) / (1 + options.beta)
        #: windows in whole segments
        self._whole = options.whole_segments
        #: segments by which an ACK opens the window in slow start (RFC 3465: L)
        self._most = 2 if options.byte_counting else 1
        #: when the present stage of congestion avoidance began (ns); None: it is yet to begin
        self._began_at: int | None = None
        #: where the cubic has its plateau, and how long after the beginning (s)
        self._w_max = 0.0
        self._k_s = 0.0
        #: the window before the last reduction, and Reno's window now
        self._prior = 0.0
        self._w_est = 0.0
        #: Reno's increase (segments per round trip) from the window before the last reduction on (section 4.3)
        self._regained = 1.0
        #: octets of growth that have not opened the window yet
        self._credit = 0.0

    def handle_ack(self, acked: int, now: int) -> None:
        sender = self._sender
        cwnd, smss = self.cwnd, sender.full_smss
        if cwnd < self.ssthresh:
            most = self._most * smss
            self.cwnd = cwnd + (acked if acked < most else most)
            return
        window, segments = cwnd / smss, acked / smss
        if self._began_at is None:
            self._begin(window, now)
        assert self._began_at is not None
        time_s = (now - self._began_at) / SECOND
        # section 4.3: a Reno that began when we did, and caught up with the window before the reduction
        alpha = self._regained if self._w_est >= self._prior else self._alpha
        self._w_est += alpha * segments / window
        if self._cubic(time_s) < self._w_est:
            growth = max(self._w_est - window, 0.0)
        else:
            # sections 4.4 and 4.5, with the bounds of 4.2: not less, and half as much again in a round trip at most
            rtt_s = (sender.rto.srtt_ns or 0) / SECOND
            target = min(max(self._cubic(time_s + rtt_s), window), 1.5 * window)
            growth = (target - window) / window * segments
        self._credit += growth * smss
        unit = smss if self._whole else 1
        opened = int(self._credit / unit) * unit
        self._credit -= opened
        self.cwnd = cwnd + opened

    def threshold(self, flight: int) -> int:
        """Return `beta` of the octets under way (section 4.6), and remember the window."""
        smss = self._sender.full_smss
        window = self.cwnd / smss
        # section 4.7, fast convergence: a flow that did not get back to where it was makes room for others
        self._w_max = window * (1 + self._beta) / 2 if window < self._w_max else window
        self._prior = window
        self._began_at = None
        if self._whole:
            return max(int(flight // smss * self._beta), 2) * smss
        return max(round(flight * self._beta), 2 * smss)

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """Begin anew after slow start: there is no plateau to return to (section 4.8)."""
        super().handle_timeout(flight, cwnd, first=first, recovering=recovering)
        self._w_max = 0.0
        self._began_at = None

    def _begin(self, window: float, now: int) -> None:
        self._began_at = now
        self._credit = 0.0
        self._w_est = window
        if self._w_max <= window:
            # section 4.8, and the first stage after slow start, which no loss came before
            self._w_max, self._k_s = window, 0.0
        else:
            self._k_s = ((self._w_max - window) / self._c) ** (1 / 3)

    def _cubic(self, time_s: float) -> float:
        """The window (segments) so long after the beginning: equation 1."""
        after_s = time_s - self._k_s
        return self._c * after_s * after_s * after_s + self._w_max


GROWTH = GrowthPlugin(name="cubic", summary="CUBIC (RFC 9438)", make=Cubic, options=CubicOptions)
