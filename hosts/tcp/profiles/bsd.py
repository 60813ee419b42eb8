"""COMPARISON's hosts: BSD/OS, a 4.4BSD (its section 4 has the 500 ms clock).

IW 1 and the initial 6 s are 4.4BSD's. 4.4BSD lets windows grow faster in two more ways, options of
`growth/standard.py`. It is not known which of them BSD/OS had (docs/tcp.md).
"""

from typing import Final

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

_BSD: Final = TcpConfig().but(
    recovery="reno",
    initial_window=1,
    limited_transmit=False,
    careful_timer=True,
    one_reduction_per_window=False,
    halve_window=True,
    slow_start_at_ssthresh=True,
    window_scaling=False,
    timestamps=False,
    delayed_ack_ns=200 * MS,
    ack_at_tick=True,
    initial_rto_ns=6 * SECOND,
    min_rto_ns=1 * SECOND,
    max_rto_ns=64 * SECOND,
    tick_ns=500 * MS,
    receive_buffer=32_768,
)
_BSD_ELN: Final = _BSD.but(eln_once_per_window=True)

PROFILE = (
    UserProfile(
        name="bsd", summary="the COMPARISON paper's E2E: 4.4BSD's Reno, 500 ms clock, IW 1, SACK off", config=_BSD
    ),
    UserProfile(name="bsd-newreno", summary="bsd with NewReno", config=_BSD.but(recovery="newreno")),
    UserProfile(name="bsd-sack", summary="bsd with SACK", config=_BSD.but(recovery="sack")),
    UserProfile(name="bsd-smart", summary="bsd with SMART", config=_BSD.but(recovery="smart")),
    UserProfile(
        name="bsd-eln", summary="bsd that keeps its window for corruption", config=_BSD_ELN.but(eln="keep-window")
    ),
    UserProfile(
        name="bsd-eln-rxmt",
        summary="bsd-eln that retransmits at the first duplicate with ELN",
        config=_BSD_ELN.but(eln="retransmit"),
    ),
)
