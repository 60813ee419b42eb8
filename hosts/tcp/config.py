"""The options of a connection: one value per question, under the RFCs' names.

Times are in nanoseconds, sizes in octets. The defaults are the RFCs' (RFC 9293, 5681, 6298); `profiles/` has the
papers' variants and Linux-like ones.

The options are one flat record: a profile is another one with a few values changed (`dataclasses.replace`), and which
recovery or growth it names does not change which values there are.
"""

from dataclasses import dataclass
from typing import Final, Literal

from common.units import MS, SECOND

#: the effect of an ACK that says a segment was lost by corruption (`tcpip/options.py`)
Eln = Literal["ignore", "keep-window", "retransmit"]

#: RFC 7323 section 2.3
MAX_WINDOW_SCALE: Final = 14
#: the largest window the 16-bit field can say without scaling
MAX_UNSCALED_WINDOW: Final = 65_535

_POSITIVE: Final = ("initial_window", "ack_every", "initial_rto_ns", "min_rto_ns", "max_rto_ns", "receive_buffer")
_NOT_NEGATIVE: Final = (
    "delayed_ack_ns", "granularity_ns", "tick_ns", "clock_phase_ns", "time_wait_ns", "syn_retries", "data_retries",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpConfig:
    """Options of one connection. Raises ValueError when one is out of range."""

    # -- the handshake ---------------------------------------------------------------------------------------

    #: largest segment's payload, sent and announced, before timestamps are taken off (RFC 9293 section 3.7.1)
    mss: int = 1460
    #: RFC 7323 section 2
    window_scaling: bool = True
    #: RFC 7323 section 3: for round-trip times and PAWS
    timestamps: bool = True
    #: RFC 3168: ask for it and agree to it
    ecn: bool = False

    # -- loss recovery ---------------------------------------------------------------------------------------

    #: how lost segments are found and repaired: a name in `hosts/tcp/recovery/`
    recovery: str = "sack"
    #: RFC 3042
    limited_transmit: bool = True
    #: without SACK and SMART: a segment sent before the last reduction of the window or before the last timeout causes
    #: no fast retransmit (RFC 6582 section 3.2, RFC 5681's advice); in 4.4BSD it does
    one_reduction_per_window: bool = True
    #: in fast recovery without SACK only the first partial ACK restarts the timer (RFC 6582 section 4); else every one
    impatient: bool = True
    #: a retransmission of fast recovery restarts the timer (RFC 6675 section 6, the careful variant; Linux); else only
    #: acknowledgements do
    careful_timer: bool = False
    #: with SACK: a retransmission is lost when a segment first sent after it has arrived, as RACK has it where nothing
    #: is reordered (RFC 8985); else only the timer finds it
    lost_retransmissions: bool = False
    #: RFC 5682; the SACK-enhanced version where SACK was agreed
    frto: bool = False

    # -- explicit loss notifications, with every recovery ----------------------------------------------------

    #: `keep-window`: a recovery from corruption leaves cwnd and ssthresh as they are (COMPARISON's E2E-ELN);
    #: `retransmit`: that, and it begins at the first duplicate that tells (E2E-ELN-RXMT)
    eln: Eln = "ignore"
    #: of the holes of one window only the first can be called corruption (COMPARISON section 4.2: its ELN conveyed
    #: nothing about several losses)
    eln_once_per_window: bool = False
    #: a hole that is filled together with others, so that no ACK has stood at it, was congestion; else it
    #: goes with the others (docs/kernel-eln.md)
    jumped_is_congestion: bool = True
    #: with SACK: a recovery that keeps the window sends no more than has arrived, and a segment per partial ACK, as
    #: proportional rate reduction does (RFC 6937, PRR-SSRB): there may be congestion among the corruption
    conserve_kept: bool = False

    # -- the congestion window -------------------------------------------------------------------------------

    #: how the window opens, and how much of it a loss leaves: a name in `hosts/tcp/growth/`
    growth: str = "standard"
    #: IW, in segments (RFC 5681 section 3.1, RFC 3390, RFC 6928)
    initial_window: int = 3
    #: how many SYNs may be lost before IW is one segment (RFC 5681 section 3.1) and the first RTO 3 s (RFC 6298 section
    #: 5.7); Linux: 1
    forgiven_syns: int = 0
    #: the sender's first ssthresh; None: as high as can be (RFC 5681)
    initial_ssthresh: int | None = None
    #: take the first ssthresh from the previous connection to the same address (CBI, RFC 9040)
    cbi: bool = False
    #: after an idle RTO the window starts from IW again (RFC 5681 section 4.1)
    restart_after_idle: bool = True
    #: windows grow by the octets acknowledged, two segments an ACK at most in slow start (RFC 3465), not by the ACK
    byte_counting: bool = False
    #: growth `cubic`: windows in whole segments, rounded down, as Linux counts them
    whole_segments: bool = False
    #: a loss halves the lesser of cwnd and the peer's window, in whole segments, and so does every timeout (4.4BSD);
    #: else FlightSize, and of timeouts in a row only the first (RFC 5681, equation 4)
    halve_window: bool = False
    #: an eighth of a segment more for every ACK of congestion avoidance (4.4BSD)
    extra_increase: bool = False
    #: a window of just ssthresh is still in slow start (RFC 5681 section 3.1 allows both)
    slow_start_at_ssthresh: bool = False
    #: the ACK that ends Reno's fast recovery opens the window, too (4.4BSD)
    grow_after_recovery: bool = False

    # -- losses that are no congestion (LT-TCP; docs/lt-tcp.md) ------------------------------------------------

    #: where ECN is agreed, only its echo reduces the window (LT-TCP section III); else losses do, as ever
    ecn_only: bool = False
    #: segments get smaller, down to `min_mss`, so that the window has `window_segments` of them (MSS_min and G)
    adaptive_mss: bool = False
    min_mss: int = 150
    window_segments: int = 10
    #: redundancy for each window, and for each duplicate ACK; the peer must understand it
    proactive_fec: bool = False
    reactive_fec: bool = False
    #: least probability that a block is decoded without reactive segments, at the estimated erasure rate
    fec_confidence: float = 0.5

    # -- acknowledgements ------------------------------------------------------------------------------------

    #: an ACK is delayed by this long at most; 0: every segment is acknowledged at once (RFC 9293 section 3.8.6.3)
    delayed_ack_ns: int = 200 * MS
    #: a delayed ACK leaves at the next tick of a clock of `delayed_ack_ns` (4.4BSD's fast clock); else after that time
    ack_at_tick: bool = False
    #: full-sized segments that make an ACK due
    ack_every: int = 2
    #: RFC 2883: an ACK tells of octets that have come twice, where SACK was agreed
    dsack: bool = False
    #: every segment is acknowledged at once until half the receive window has come (DAASS, SLACP section 3)
    daass: bool = False

    # -- timers ----------------------------------------------------------------------------------------------

    #: RFC 6298 section 2.1
    initial_rto_ns: int = 1 * SECOND
    #: RFC 6298 section 2.4
    min_rto_ns: int = 1 * SECOND
    #: RFC 6298 section 2.5
    max_rto_ns: int = 60 * SECOND
    #: G of RFC 6298: the least the variance term of the RTO can be
    granularity_ns: int = 1 * MS
    #: the timers and the round-trip times are 4.4BSD's, in ticks of this clock (`bsd.py`); 0: exact
    tick_ns: int = 0
    #: when this host's clocks tick: at this time, and every tick before and after
    clock_phase_ns: int = 0
    #: how often a SYN is sent again before connecting fails, and any other segment before the connection does
    syn_retries: int = 6
    data_retries: int = 15
    #: 2 MSL (RFC 9293 section 3.4.2 says four minutes; Linux keeps one)
    time_wait_ns: int = 60 * SECOND

    # -- buffers ---------------------------------------------------------------------------------------------

    #: octets the receiver can hold: the largest window it offers
    receive_buffer: int = 65_535
    #: octets written and not acknowledged that the sender can hold
    send_buffer: int = 1 << 20
    #: octets that a transfer is written ahead of the acknowledgements, or two congestion windows if that is more, as
    #: Linux's send buffer grows; None: as many as the send buffer takes
    written_ahead: int | None = None
    #: small segments wait while any is on its way (RFC 896)
    nagle: bool = True

    def __post_init__(self) -> None:
        # they need this module
        from hosts.tcp.growth import GROWTHS
        from hosts.tcp.recovery import RECOVERIES

        _require(self.recovery in RECOVERIES, "recovery", repr(self.recovery), f"one of {', '.join(RECOVERIES)}")
        _require(self.growth in GROWTHS, "growth", repr(self.growth), f"one of {', '.join(GROWTHS)}")
        _require(64 <= self.mss <= 65_495, "mss", self.mss, "64 to 65495")
        for name in _POSITIVE:
            _require(getattr(self, name) > 0, name, getattr(self, name), "more than 0")
        for name in _NOT_NEGATIVE:
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _require(64 <= self.min_mss <= self.mss, "min_mss", self.min_mss, f"64 to mss, {self.mss}")
        _require(1 <= self.window_segments <= 64, "window_segments", self.window_segments, "1 to 64")
        _require(0 < self.fec_confidence < 1, "fec_confidence", self.fec_confidence, "between 0 and 1")
        _require(self.min_rto_ns <= self.max_rto_ns, "max_rto_ns", self.max_rto_ns, "min_rto_ns or more")
        # RFC 9293 section 3.8.6.3
        _require(self.delayed_ack_ns <= 500 * MS, "delayed_ack_ns", self.delayed_ack_ns, "half a second at most")
        _require(not (self.tick_ns and self.timestamps), "timestamps", self.timestamps, "off where there is a tick_ns")
        _require(not self.ack_at_tick or self.delayed_ack_ns > 0, "delayed_ack_ns", self.delayed_ack_ns, "above 0")
        _require(self.send_buffer >= self.mss, "send_buffer", self.send_buffer, "mss or more")
        ahead = self.written_ahead
        _require(ahead is None or ahead >= self.mss, "written_ahead", ahead, "mss or more")
        most = MAX_UNSCALED_WINDOW << (MAX_WINDOW_SCALE if self.window_scaling else 0)
        _require(self.receive_buffer <= most, "receive_buffer", self.receive_buffer, f"{most} at most")


def _require(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}: must be {wanted}")
