"""Our counterpart of the kernel's profile `eln`: Linux's Reno with SACK (docs/kernel-eln.md compares them)."""

from common.units import MS
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

PROFILE = UserProfile(
    name="sack-eln",
    summary="Linux's values: sack that keeps its window for corruption, IW 10, RTO from 200 ms on, sees lost "
    "retransmissions",
    config=TcpConfig().but(
        recovery="sack",
        eln="keep-window",
        lost_retransmissions=True,
        conserve_kept=True,
        jumped_is_congestion=False,
        initial_window=10,
        forgiven_syns=1,
        byte_counting=True,
        impatient=False,
        careful_timer=True,
        delayed_ack_ns=40 * MS,
        min_rto_ns=200 * MS,
        granularity_ns=200 * MS,
        receive_buffer=1 << 20,
    ),
)
