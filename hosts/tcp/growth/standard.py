"""Slow start and congestion avoidance by the ACK (RFC 5681 section 3.1) or by the octet (RFC 3465), and 4.4BSD's."""

from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import Growth, GrowthPlugin
from hosts.tcp.send_state import SendState


class PerAck(Growth):
    """A segment per ACK below ssthresh, and above it one per window (RFC 5681 section 3.1)."""

    __slots__ = ("_halve_window",)

    def __init__(self, sender: SendState, config: TcpConfig) -> None:
        super().__init__(sender)
        self._halve_window = config.halve_window

    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window."""
        sender = self._sender
        cwnd, smss = sender.cwnd, sender.full_smss
        if cwnd < sender.ssthresh:
            sender.cwnd = cwnd + (acked if acked < smss else smss)
        else:
            sender.cwnd = cwnd + (smss * smss // cwnd or 1)

    def handle_loss(self, flight: int) -> int:
        """Return half of the octets under way (equation 4); 4.4BSD: half of the window, in whole segments."""
        sender = self._sender
        whole = 2 * sender.full_smss
        if self._halve_window:
            flight = min(sender.cwnd, sender.window) // whole * whole
        return max(flight // 2, whole)


class PerOctet(PerAck):
    """By the octets acknowledged, two segments an ACK at most in slow start (RFC 3465)."""

    __slots__ = ("_counted",)

    def __init__(self, sender: SendState, config: TcpConfig) -> None:
        super().__init__(sender, config)
        #: octets acknowledged since the window last grew
        self._counted = 0

    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window."""
        sender = self._sender
        cwnd, smss = sender.cwnd, sender.full_smss
        if cwnd < sender.ssthresh:
            sender.cwnd = cwnd + min(acked, 2 * smss)
            return
        self._counted += acked
        if self._counted >= cwnd:
            self._counted -= cwnd
            sender.cwnd = cwnd + smss

    def handle_timeout(self) -> None:
        """Count from nothing."""
        self._counted = 0


class Bsd(PerAck):
    """4.4BSD's two ways to grow faster, each an option of `TcpConfig`."""

    __slots__ = ("_extra_increase", "_slow_start_at_ssthresh")

    def __init__(self, sender: SendState, config: TcpConfig) -> None:
        super().__init__(sender, config)
        self._extra_increase = config.extra_increase
        self._slow_start_at_ssthresh = config.slow_start_at_ssthresh

    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window."""
        sender = self._sender
        cwnd, smss = sender.cwnd, sender.full_smss
        if cwnd < sender.ssthresh or (cwnd == sender.ssthresh and self._slow_start_at_ssthresh):
            sender.cwnd = cwnd + (acked if acked < smss else smss)
        else:
            sender.cwnd = cwnd + (smss * smss // cwnd or 1) + (smss // 8 if self._extra_increase else 0)


def _make(sender: SendState, config: TcpConfig) -> Growth:
    if config.byte_counting:
        return PerOctet(sender, config)
    if config.extra_increase or config.slow_start_at_ssthresh:
        return Bsd(sender, config)
    return PerAck(sender, config)


GROWTH = GrowthPlugin(name="standard", summary="slow start and congestion avoidance (RFC 5681, RFC 3465)", make=_make)
