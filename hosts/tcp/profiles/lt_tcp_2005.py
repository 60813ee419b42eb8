"""LT-TCP as the paper has it, and its parts: each adds one option to the profile before it (docs/lt-tcp.md).

Read first: LT-TCP sections III and IV.B; ns-2.27 (January 2004), tcl/lib/ns-default.tcl, tcp/tcp.cc, tcp/tcp-sack1.cc.

The paper's simulator is ns-2, and what the paper does not say is ns-2's default of that time: an ACK per segment
(`Agent/TCPSink/Sack1`), IW 2, RTO 6 s before the first sample (`rtxcur_init_`), 1 s at least (`minrto_`) and 64 times
as long at most, ticks of 10 ms (`tcpTick_`); no end of retries. The window is halved, and not FlightSize.
"""

from typing import Final

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

#: more retries than a run has
_WITHOUT_END: Final = 1_000_000

_SACK: Final = TcpConfig().but(
    ecn=True, timestamps=False, delayed_ack_ns=0, initial_window=2, initial_rto_ns=6 * SECOND, min_rto_ns=1 * SECOND,
    max_rto_ns=100_000 * SECOND, max_doublings=6, time_one=True, granularity_ns=10 * MS, forgiven_syns=_WITHOUT_END,
    syn_retries=_WITHOUT_END, data_retries=_WITHOUT_END, halve_window=True, receive_buffer=1 << 20,
    # of the parts below, the paper has no more than this
    fec_confidence=0.99, most_redundancy=0.6, grow_in_recovery=False, repeat_cwr=False,
    room_for_received=False, count_repairs=False, count_by_report=False, repair_again=False,
)  # fmt: skip
_ECN_ONLY: Final = _SACK.but(ecn_only=True)
_ADAPTIVE: Final = _ECN_ONLY.but(adaptive_mss=True)
_PROACTIVE: Final = _ADAPTIVE.but(proactive_fec=True)

PROFILE = (
    UserProfile(name="sack-2005", summary="the LT-TCP paper's TCP-SACK with ECN: ns-2's values", config=_SACK),
    UserProfile(name="lt-ecn-2005", summary="sack-2005, and only ECN reduces the window", config=_ECN_ONLY),
    UserProfile(name="lt-mss-2005", summary="lt-ecn-2005, and adaptive MSS", config=_ADAPTIVE),
    UserProfile(name="lt-proactive-2005", summary="lt-mss-2005, and proactive FEC", config=_PROACTIVE),
    UserProfile(
        name="lt-reactive-2005", summary="lt-mss-2005, and reactive FEC", config=_ADAPTIVE.but(reactive_fec=True)
    ),
    UserProfile(
        name="lt-tcp-2005", summary="LT-TCP as the paper has it: lt-proactive-2005, and reactive FEC",
        config=_PROACTIVE.but(reactive_fec=True),
    ),
)  # fmt: skip
