"""The options of a connection that no plugin has, in groups: one value per question, under the RFCs' names.

Times are in nanoseconds, sizes in octets. The defaults are the RFCs' (RFC 9293, 5681, 6298). The options of a loss
recovery or a window growth are beside its algorithm (`recovery/`, `growth/`). `config.py` composes and checks them.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Le, Lt

from common.options import Bytes, Count
from common.units import MS, SECOND

#: the effect of an ACK that says a segment was lost by corruption (`tcpip/options.py`)
Eln = Literal["ignore", "keep-window", "retransmit"]

#: RFC 7323 section 2.3
MAX_WINDOW_SCALE: Final = 14
#: the largest window the 16-bit field can say without scaling
MAX_UNSCALED_WINDOW: Final = 65_535

_Duration = Annotated[int, Gt(0)]
_NotNegative = Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class HandshakeOptions:
    """The options of TCP that the SYN carries."""

    #: largest segment's payload, sent and announced, before timestamps are taken off (RFC 9293 section 3.7.1)
    mss: Annotated[int, Ge(64), Le(65_495)] = 1460
    #: RFC 7323 section 2
    window_scaling: bool = True
    #: RFC 7323 section 3: for round-trip times and PAWS
    timestamps: bool = True
    #: RFC 3168: ask for it and agree to it
    ecn: bool = False
    #: RFC 9768: ask for accurate ECN and agree to it; where the peer has ECN alone, that is agreed
    accecn: bool = False


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """Losses, with any recovery."""

    #: RFC 3042
    limited_transmit: bool = True
    #: a retransmission of fast recovery restarts the timer (RFC 6675 section 6, the careful variant; Linux); else only
    #: acknowledgements do
    careful_timer: bool = False
    #: RFC 5682; the SACK-enhanced version where SACK was agreed
    frto: bool = False
    #: explicit loss notifications. `keep-window`: a recovery from corruption leaves cwnd and ssthresh as they are
    #: (COMPARISON's E2E-ELN); `retransmit`: that, and it begins at the first duplicate that tells (E2E-ELN-RXMT)
    eln: Eln = "ignore"
    #: of the holes of one window only the first can be called corruption (COMPARISON section 4.2: its ELN conveyed
    #: nothing about several losses)
    eln_once_per_window: bool = False
    #: a hole that is filled together with others, so that no ACK has stood at it, was congestion; else it
    #: goes with the others (docs/kernel-eln.md)
    jumped_is_congestion: bool = True


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """The congestion window at the start, and after a pause."""

    #: IW, in segments (RFC 5681 section 3.1, RFC 3390, RFC 6928)
    initial_window: Count = 3
    #: how many SYNs may be lost before IW is one segment (RFC 5681 section 3.1) and the first RTO 3 s (RFC 6298 section
    #: 5.7); Linux: 1
    forgiven_syns: _NotNegative = 0
    #: the sender's first ssthresh; None: as high as can be (RFC 5681)
    initial_ssthresh: Bytes | None = None
    #: take the first ssthresh from the previous connection to the same address (CBI, RFC 9040)
    cbi: bool = False
    #: after an idle RTO the window starts from IW again (RFC 5681 section 4.1)
    restart_after_idle: bool = True


@dataclass(frozen=True, kw_only=True)
class LtOptions:
    """Losses that are no congestion (LT-TCP; docs/lt-tcp.md)."""

    #: where ECN is agreed, only its echo reduces the window (LT-TCP section III); else losses do, as ever
    ecn_only: bool = False
    #: segments get smaller, down to `min_mss`, so that the window has `window_segments` of them (MSS_min and G)
    adaptive_mss: bool = False
    min_mss: Annotated[int, Ge(64)] = 150
    window_segments: Annotated[int, Ge(1), Le(64)] = 10
    #: redundancy for each window, and for each duplicate ACK; the peer must understand it
    proactive_fec: bool = False
    reactive_fec: bool = False
    #: least probability that a block is decoded without reactive segments, at the estimated erasure rate
    fec_confidence: Annotated[float, Gt(0), Lt(1)] = 0.5
    #: redundancy at most, as a share of a block's segments
    most_redundancy: Annotated[float, Gt(0), Le(1)] = 1.0

    # ours: the paper has none of these (docs/lt-tcp.md says what each brings)

    #: the window goes on growing while a loss that is no congestion is repaired
    grow_in_recovery: bool = True
    #: CWR goes on all new data until some of that is acknowledged; else on the first segment
    repeat_cwr: bool = True
    #: the window grows by full segments, whatever their present size
    grow_by_full_segments: bool = True
    #: holes of a block are not lost before its proactive segments had their chance
    wait_for_fec: bool = True
    #: segments that arrive behind a hole make room in the window at once
    room_for_received: bool = True
    #: reactive segments are as many as missing symbols need at the estimated rate; else each duplicate ACK permits R
    count_repairs: bool = True
    #: the receiver's report says how many symbols are missing; else SACK's holes do
    count_by_report: bool = True
    #: the count begins anew when the segments sent have left the network, and a timeout begins one, too
    repair_again: bool = True
    #: a window without losses lowers the estimate
    forget_losses: bool = True


@dataclass(frozen=True, kw_only=True)
class AckOptions:
    """When the receiver acknowledges, and its words."""

    #: an ACK is delayed by this long at most; 0: every segment is acknowledged at once (RFC 9293 section 3.8.6.3)
    delayed_ack_ns: Annotated[int, Ge(0), Le(500 * MS)] = 200 * MS
    #: a delayed ACK leaves at the next tick of a clock of `delayed_ack_ns` (4.4BSD's fast clock); else after that time
    ack_at_tick: bool = False
    #: full-sized segments that make an ACK due
    ack_every: Count = 2
    #: RFC 2883: an ACK tells of octets that have come twice, where SACK was agreed
    dsack: bool = False
    #: every segment is acknowledged at once until half the receive window has come (DAASS, SLACP section 3)
    daass: bool = False


@dataclass(frozen=True, kw_only=True)
class TimerOptions:
    """Timers and the clocks behind them."""

    #: RFC 6298 section 2.1
    initial_rto_ns: _Duration = 1 * SECOND
    #: RFC 6298 section 2.4
    min_rto_ns: _Duration = 1 * SECOND
    #: RFC 6298 section 2.5
    max_rto_ns: _Duration = 60 * SECOND
    #: one segment after the other is timed, as in 4.4BSD and ns-2; else each
    time_one: bool = False
    #: doublings of the RTO in a row at most (ns-2: 6)
    max_doublings: Annotated[int, Ge(1), Le(64)] = 64
    #: G of RFC 6298: the least the variance term of the RTO can be
    granularity_ns: _NotNegative = 1 * MS
    #: the timers and the round-trip times are 4.4BSD's, in ticks of this clock (`bsd.py`); 0: exact
    tick_ns: _NotNegative = 0
    #: when this host's clocks tick: at this time, and every tick before and after
    clock_phase_ns: _NotNegative = 0
    #: how often a SYN is sent again before connecting fails, and any other segment before the connection does
    syn_retries: _NotNegative = 6
    data_retries: _NotNegative = 15
    #: 2 MSL (RFC 9293 section 3.4.2 says four minutes; Linux keeps one)
    time_wait_ns: _NotNegative = 60 * SECOND


@dataclass(frozen=True, kw_only=True)
class BufferOptions:
    """The buffers between the application and the network."""

    #: octets the receiver can hold: the largest window it offers
    receive_buffer: Bytes = 65_535
    #: octets written and not acknowledged that the sender can hold
    send_buffer: Bytes = 1 << 20
    #: octets that a transfer is written ahead of the acknowledgements, or two congestion windows if that is more, as
    #: Linux's send buffer grows; None: as many as the send buffer takes
    written_ahead: Bytes | None = None
    #: small segments wait while any is on its way (RFC 896)
    nagle: bool = True
