"""A TCP as good as today's Linux (docs/tcp.md compares them)."""

from common.units import MS
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

PROFILE = UserProfile(
    name="modern",
    summary="as today's Linux: RACK-TLP, PRR, D-SACK, Linux's CUBIC, F-RTO, IW 10, RTO from 200 ms on",
    config=TcpConfig().but(
        recovery="rack",
        growth="cubic-linux",
        whole_segments=True,
        byte_counting=True,
        frto=True,
        dsack=True,
        initial_window=10,
        forgiven_syns=1,
        careful_timer=True,
        delayed_ack_ns=40 * MS,
        min_rto_ns=200 * MS,
        granularity_ns=200 * MS,
        max_rto_ns=120_000 * MS,
        receive_buffer=1 << 22,
        send_buffer=1 << 22,
        written_ahead=1 << 16,
    ),
)
