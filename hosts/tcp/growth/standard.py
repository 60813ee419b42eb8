"""Slow start and congestion avoidance by the ACK (RFC 5681 section 3.1) or by the octet (RFC 3465), and 4.4BSD's."""

from dataclasses import dataclass

from hosts.tcp.growth import Growth, GrowthPlugin, SlowStartOptions
from hosts.tcp.send_state import SendState


@dataclass(frozen=True, kw_only=True)
class StandardOptions(SlowStartOptions):
    """Slow start and congestion avoidance, and 4.4BSD's differences."""

    #: a loss halves the lesser of cwnd and the peer's window, in whole segments, and so does every timeout (4.4BSD);
    #: else FlightSize, and of timeouts in a row only the first (RFC 5681, equation 4)
    halve_window: bool = False
    #: an eighth of a segment more for every ACK of congestion avoidance (4.4BSD)
    extra_increase: bool = False
    #: a window of just ssthresh is still in slow start (RFC 5681 section 3.1 allows both)
    slow_start_at_ssthresh: bool = False


class PerAck(Growth):
    """A segment per ACK below ssthresh, and above it one per window (RFC 5681 section 3.1)."""

    def __init__(self, sender: SendState, options: StandardOptions) -> None:
        super().__init__(sender)
        self._halve_window = options.halve_window

    def handle_ack(self, acked: int, now: int) -> None:
        cwnd, smss = self.cwnd, self._sender.unit
        if cwnd < self.ssthresh:
            self.cwnd = cwnd + (acked if acked < smss else smss)
        else:
            self.cwnd = cwnd + (smss * smss // cwnd or 1)

    def threshold(self, flight: int) -> int:
        """Return half of the octets under way (equation 4); 4.4BSD: half of the window, in whole segments."""
        sender = self._sender
        whole = 2 * sender.unit
        if self._halve_window:
            flight = min(self.cwnd, sender.window) // whole * whole
        return max(flight // 2, whole)

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """Take a timeout; 4.4BSD halves the window at each."""
        halves = self._halve_window
        super().handle_timeout(flight, cwnd, first=first or halves, recovering=recovering and not halves)


class PerOctet(PerAck):
    """By the octets acknowledged, two segments an ACK at most in slow start (RFC 3465)."""

    def __init__(self, sender: SendState, options: StandardOptions) -> None:
        super().__init__(sender, options)
        #: octets acknowledged since the window last grew
        self._counted = 0

    def handle_ack(self, acked: int, now: int) -> None:
        cwnd, smss = self.cwnd, self._sender.unit
        if cwnd < self.ssthresh:
            self.cwnd = cwnd + min(acked, 2 * smss)
            return
        self._counted += acked
        if self._counted >= cwnd:
            self._counted -= cwnd
            self.cwnd = cwnd + smss

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """Count from nothing."""
        self._counted = 0
        super().handle_timeout(flight, cwnd, first=first, recovering=recovering)


class Bsd(PerAck):
    """4.4BSD's two ways to grow faster, each an option."""

    def __init__(self, sender: SendState, options: StandardOptions) -> None:
        super().__init__(sender, options)
        self._extra_increase = options.extra_increase
        self._slow_start_at_ssthresh = options.slow_start_at_ssthresh

    def handle_ack(self, acked: int, now: int) -> None:
        cwnd, smss = self.cwnd, self._sender.unit
        if cwnd < self.ssthresh or (cwnd == self.ssthresh and self._slow_start_at_ssthresh):
            self.cwnd = cwnd + (acked if acked < smss else smss)
        else:
            self.cwnd = cwnd + (smss * smss // cwnd or 1) + (smss // 8 if self._extra_increase else 0)


def _make(sender: SendState, options: StandardOptions) -> Growth:
    if options.byte_counting:
        return PerOctet(sender, options)
    if options.extra_increase or options.slow_start_at_ssthresh:
        return Bsd(sender, options)
    return PerAck(sender, options)


GROWTH = GrowthPlugin(
    name="standard",
    summary="slow start and congestion avoidance (RFC 5681, RFC 3465)",
    make=_make,
    options=StandardOptions,
)
