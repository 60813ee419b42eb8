"""CUBIC (RFC 9438): after a loss the window rises to where it was along a cubic of the time since, and then beyond.

Section numbers are RFC 9438's. Windows are in segments here, as there, and in octets in `cwnd`. Slow start is the
standard one, by the ACK or, with `byte_counting`, by the octet.

Left out: HyStart++ (section 4.10), and undoing a reduction that a spurious loss caused (section 4.9). `cubic_linux.py`
is the CUBIC of Linux, with HyStart.
"""

from typing import Final

from common.units import SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import Growth, GrowthPlugin
from hosts.tcp.send_state import SendState

#: sections 4.6 and 5: the multiplicative decrease, and how steep the cubic is (segments per second cubed)
BETA: Final = 0.7
C: Final = 0.4
#: section 4.3: the increase with which a Reno of this decrease is as fast as a Reno that halves
ALPHA: Final = 3 * (1 - BETA) / (1 + BETA)


class Cubic(Growth):
    """CUBIC's congestion avoidance and decrease."""

    __slots__ = ("_began_at", "_credit", "_k_s", "_most", "_prior", "_regained", "_w_est", "_w_max", "_whole")

    def __init__(self, sender: SendState, config: TcpConfig) -> None:
        super().__init__(sender)
        #: windows in whole segments
        self._whole = config.whole_segments
        #: segments by which an ACK opens the window in slow start (RFC 3465: L)
        self._most = 2 if config.byte_counting else 1
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
        """Open the window."""
        sender = self._sender
        cwnd, smss = sender.cwnd, sender.full_smss
        if cwnd < sender.ssthresh:
            most = self._most * smss
            sender.cwnd = cwnd + (acked if acked < most else most)
            return
        window, segments = cwnd / smss, acked / smss
        if self._began_at is None:
            self._begin(window, now)
        assert self._began_at is not None
        time_s = (now - self._began_at) / SECOND
        # section 4.3: a Reno that began when we did, and caught up with the window before the reduction
        alpha = self._regained if self._w_est >= self._prior else ALPHA
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
        sender.cwnd = cwnd + opened

    def handle_loss(self, flight: int) -> int:
        """Return 0.7 of the octets under way (section 4.6), and remember the window."""
        sender = self._sender
        window = sender.cwnd / sender.full_smss
        # section 4.7, fast convergence: a flow that did not get back to where it was makes room for others
        self._w_max = window * (1 + BETA) / 2 if window < self._w_max else window
        self._prior = window
        self._began_at = None
        smss = sender.full_smss
        if self._whole:
            return max(int(flight // smss * BETA), 2) * smss
        return max(round(flight * BETA), 2 * smss)

    def handle_timeout(self) -> None:
        """Begin anew after slow start: there is no plateau to return to (section 4.8)."""
        self._w_max = 0.0
        self._began_at = None

    def _begin(self, window: float, now: int) -> None:
        """Begin a stage of congestion avoidance."""
        self._began_at = now
        self._credit = 0.0
        self._w_est = window
        if self._w_max <= window:
            # section 4.8, and the first stage after slow start, which no loss came before
            self._w_max, self._k_s = window, 0.0
        else:
            self._k_s = ((self._w_max - window) / C) ** (1 / 3)

    def _cubic(self, time_s: float) -> float:
        """The window (segments) so long after the beginning: equation 1."""
        after_s = time_s - self._k_s
        return C * after_s * after_s * after_s + self._w_max


GROWTH = GrowthPlugin(name="cubic", summary="CUBIC (RFC 9438)", make=Cubic)
