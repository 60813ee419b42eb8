"""Window growth: how ACKs open the congestion window, and the ssthresh that a loss leaves. Each growth is a file, which
declares a `GROWTH`; `TcpConfig.growth` has its name and its options.

A growth owns its window: the sender and its recovery read `cwnd` and `ssthresh`, and tell the growth what has happened.
Loss recovery is another seam (`recovery/`): it finds losses, and sends the segments that repair them.

A growth may pace: the sender spaces segments by its `pacing_rate_bps` (`pacing.py`). A growth that `samples` has a
model of the path in place of a threshold: it gets a delivery rate sample with each ACK of new data, selective ones
too, and each lost segment (`delivery.py`).
"""

# ruff: noqa: B027 (methods that do nothing are the defaults)

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mypy_extensions import mypyc_attr

from common.options import NoOptions
from common.registry import Registry
from hosts.tcp.delivery import RateSample
from hosts.tcp.recovery.transmissions import Transmission
from hosts.tcp.send_state import INFINITE, SendState
from tcpip.segment import ECT0


@mypyc_attr(allow_interpreted_subclasses=True)
class Growth(ABC):
    """One sender's congestion window: `cwnd` and `ssthresh` in octets."""

    def __init__(self, sender: SendState) -> None:
        self._sender = sender
        self.cwnd = 0
        self.ssthresh = INFINITE
        #: rate of segments with data, without headers (bit/s); None: they leave as soon as the windows let them
        self.pacing_rate_bps: int | None = None
        #: octets that may leave together at that rate; 0: each segment by itself
        self.send_quantum = 0
        #: the ECN field of data, where the connection may send ECN-capable packets
        self.ect = ECT0
        #: it takes each mark (`handle_marks`), and its window is not reduced by any as by a loss
        self.scales = False
        #: in one line, what it is in place of itself where the peer has not agreed to its needs; set by `start`
        self.fallback: str | None = None

    def start(self, cwnd: int, ssthresh: int) -> None:
        """Begin with a window."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    @abstractmethod
    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window for an ACK of `acked` new octets, which had filled it."""

    @abstractmethod
    def threshold(self, flight: int) -> int:
        """Take a loss with `flight` octets under way; return the new ssthresh. `cwnd` is the window before it."""

    def handle_loss(self, flight: int) -> int:
        """Take a loss with `flight` octets under way; return the new ssthresh."""
        self.ssthresh = ssthresh = self.threshold(flight)
        return ssthresh

    def handle_mark(self, flight: int) -> int:
        """Take an echo of ECN with `flight` octets under way, as a loss (RFC 3168); return the new ssthresh."""
        return self.handle_loss(flight)

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """Take a timeout with `flight` octets under way; `cwnd` is left. `first`: of timeouts in a row the first, which
        alone is a loss (RFC 5681, equation 4).
        """
        if first:
            before = self.ssthresh
            ssthresh = self.handle_loss(flight)
            if recovering and before < ssthresh:
                # most of FlightSize has left the network: a timeout then must not raise the threshold
                self.ssthresh = before
        self.cwnd = cwnd

    def hold(self, cwnd: int) -> None:
        """Have this window: a recovery says so."""
        self.cwnd = cwnd

    def restore(self, cwnd: int, ssthresh: int) -> None:
        """Return to the window before a loss that was none, where that is more."""
        self.ssthresh = max(self.ssthresh, ssthresh)
        self.cwnd = max(self.cwnd, cwnd)

    # -- of those that scale ---------------------------------------------------------------------------------

    def handle_marks(self, acked: int, marked: int, now: int) -> None:
        """Take an ACK of `acked` more octets, selectively, too, of which `marked` had CE."""

    # -- of those that sample --------------------------------------------------------------------------------

    def handle_transmit(self, now: int) -> None:
        """Take that a segment is about to leave."""

    def handle_lost(self, lost: Transmission, now: int) -> None:
        """Take a segment that is lost; the recovery says so, or sends it again."""

    def handle_sample(self, sample: RateSample, now: int) -> None:
        """Take the sample of an ACK that tells of new data; its losses have been told of."""


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class SlowStartOptions:
    """The options of slow start, for growths that have the standard one."""

    #: windows grow by the octets acknowledged, two segments an ACK at most in slow start (RFC 3465), not by the ACK
    byte_counting: bool = False


@dataclass(frozen=True, kw_only=True)
class GrowthPlugin:
    """A growth by its name."""

    name: str
    #: for the table in docs/tcp.md
    summary: str
    #: makes a growth of its sender and its options
    make: Callable[[SendState, Any], Growth]
    #: a dataclass (`common/options.py`) whose fields have defaults
    options: type[Any] = NoOptions
    #: it gets delivery rate samples and each lost segment
    samples: bool = False


GROWTHS: Final = Registry("hosts.tcp.growth", "GROWTH", GrowthPlugin)
